//! Looks up Azure sizes: one as a sheet, many as a list.

use cudock_base::UsageError;
use cudock_base::text::suggest;

use super::fields::{TABLES, count, gpu_text, per_gpu, prices_of};
use super::{lifecycle, prices};
use crate::Facts;
use crate::lookup::NameMatch;
use crate::sheets::result::{LookupResult, Sheet, enum_name, joined, or_dash, value};
use crate::sheets::rows::{OneSizeRow, SizeRow};
use crate::tables::{Lifecycle, PriceRow, Size};
use crate::version::Date;

#[derive(Debug, Clone, Copy)]
pub struct SizeQuery<'a> {
    pub name: Option<&'a str>,
    /// Only those with this GPU.
    pub gpu: Option<&'a str>,
    /// Prices of this region.
    pub region: Option<&'a str>,
    /// Retired and undocumented sizes, too.
    pub all: bool,
    /// Sort by retirement date.
    pub lifecycle: bool,
    /// The price in every region.
    pub prices: bool,
    /// The day the answer is for.
    pub today: Date,
}

/// Azure sizes: one, or those that a query describes.
pub fn size(facts: &Facts, query: &SizeQuery<'_>) -> Result<LookupResult, UsageError> {
    let region = query.region.map(|region| known_region(facts, region)).transpose()?;
    if query.name.is_some() && query.gpu.is_some() {
        return Err(UsageError::new("a size and --gpu cannot be combined"));
    }
    match (query.name, query.lifecycle, query.prices) {
        (_, true, true) => Err(UsageError::new("--lifecycle and --prices cannot be combined")),
        (name, true, false) => {
            let named = name.map(|name| find(facts, name)).transpose()?;
            let chosen = match named {
                Some(size) => vec![size],
                None => chosen(facts, query.gpu, |_| true)?,
            };
            Ok(lifecycle::result(&chosen, region, query.all || named.is_some(), query.today))
        }
        (Some(name), false, true) => prices::result(facts, find(facts, name)?, region),
        (None, false, true) => Err(UsageError::new("--prices needs a size")
            .hint("cudock facts size Standard_NC24ads_A100_v4 --prices")),
        (Some(name), false, false) => {
            let size = find(facts, name)?;
            let rows = prices_of(facts, size, region);
            let sheet = size_sheet(facts, size, &rows, query.today);
            Ok(LookupResult::sheet(&TABLES, &OneSizeRow { size, prices: &rows }, sheet))
        }
        (None, false, false) => sizes(facts, query, region),
    }
}

/// A region as the price table spells it.
pub fn known_region<'a>(facts: &'a Facts, region: &str) -> Result<&'a str, UsageError> {
    let wanted = suggest::normalize(region);
    let mut regions = facts.prices().regions();
    regions.find(|known| suggest::normalize(known) == wanted).ok_or_else(|| {
        let near = suggest::nearest(region, facts.prices().regions());
        UsageError::new(format!("no known price in region `{region}`")).near(&near)
    })
}

fn find<'a>(facts: &'a Facts, name: &str) -> Result<&'a Size, UsageError> {
    let near = match facts.sizes().find(name) {
        NameMatch::One(size) => return Ok(size),
        NameMatch::Several(_) => {
            return Err(UsageError::new(format!("`{name}` is ambiguous: it matches several sizes")));
        }
        NameMatch::NotFound(near) => near,
    };
    let error = UsageError::new(format!("unknown Azure size `{name}`")).near(&near);
    let wanted = name.to_ascii_lowercase();
    let mut outdated = facts.sizes().outdated.iter();
    Err(match outdated.find(|row| row.choice.to_ascii_lowercase().contains(&wanted)) {
        Some(row) => {
            let instead = row.use_instead.as_ref().map_or_else(String::new, |names| format!(" Use {names}."));
            error.hint(format!("{}{instead}", row.status))
        }
        None => error.hint("`cudock facts size` lists the sizes on sale"),
    })
}

/// The sizes with a GPU, or all, that a condition holds for.
fn chosen<'a>(
    facts: &'a Facts,
    gpu: Option<&str>,
    holds: impl Fn(&Size) -> bool,
) -> Result<Vec<&'a Size>, UsageError> {
    let ids_of = |gpu: &str| match facts.gpus().find(gpu) {
        NameMatch::NotFound(near) => Err(UsageError::new(format!("unknown GPU `{gpu}`")).near(&near)),
        found => Ok(found.rows().into_iter().map(|gpu| gpu.id.as_str()).collect::<Vec<_>>()),
    };
    let ids = gpu.map(ids_of).transpose()?;
    let fits = |size: &&Size| {
        let gpu = ids.as_ref().is_none_or(|ids| size.gpu.as_deref().is_some_and(|gpu| ids.contains(&gpu)));
        gpu && holds(size)
    };
    Ok(facts.sizes().size.iter().filter(fits).collect())
}

fn size_sheet(facts: &Facts, size: &Size, rows: &[PriceRow<'_>], today: Date) -> Sheet {
    let gpu = size.gpu.as_ref().map(|gpu| {
        let memory = size.gpu_memory_gb.map_or_else(String::new, |memory| format!(", {memory} GB each"));
        let board = size.gpu_board.as_ref().map_or_else(String::new, |board| format!(" ({board})"));
        format!("{} x {gpu}{board}{memory}", count(size))
    });
    let capability = size.gpu.as_deref().and_then(|gpu| facts.gpus().find(gpu).one()?.capability);
    let nvme = size.nvme_gib.map(|gib| format!("{gib} GiB in {} disks", size.nvme_disks.unwrap_or(1)));
    let cheapest = rows.iter().take(5).map(|row| {
        let spot = row.spot.map_or_else(String::new, |spot| format!(", Spot ${spot}"));
        let price = row.price.map_or_else(|| "-".to_owned(), |price| format!("${price}"));
        let date = row.price_date.map_or_else(String::new, |date| format!(" ({date})"));
        format!("{} {price}{spot}{date}", row.region)
    });
    let more = rows.len().saturating_sub(5);
    let mut cheapest: Vec<String> = cheapest.collect();
    if cheapest.is_empty() {
        cheapest.push("none known".to_owned());
    }
    if more > 0 {
        cheapest.push(format!("and {more} more regions with --prices"));
    }
    let gpu_price = rows.first().and_then(|row| per_gpu(size, row.price?));
    Sheet::new(size.name.clone())
        .field("status", status(size, today))
        .maybe("series", size.series.as_ref())
        .maybe("GPU", gpu)
        .maybe("capability", capability)
        .maybe("vCPU", size.vcpu)
        .maybe("memory", size.ram_gib.map(|ram| format!("{ram} GiB")))
        .field("CPU", size.cpu_arch.name())
        .maybe("driver", size.driver.map(|driver| enum_name(&driver)))
        .maybe("temporary disk", size.temp_disk_gib.map(|gib| format!("{gib} GiB")))
        .maybe("NVMe", nvme)
        .maybe("network", size.network_mbps.map(|mbps| format!("{} Gb/s", f64::from(mbps) / 1000.0)))
        .maybe("InfiniBand", size.infiniband_gbps.map(|gbps| format!("{gbps} Gb/s")))
        .maybe("NVLink", size.nvlink.as_ref())
        .maybe("quota family", size.quota_family.as_ref())
        .field("generations", joined(&size.generations))
        .field("USD per hour", cheapest.join("\n"))
        .maybe("USD/GPU-h", gpu_price.map(|usd| format!("{usd} in the cheapest region")))
        .maybe("replacement", size.replacement.as_ref())
        .maybe("note", size.note.as_ref())
        .sources(facts.sizes().table.resolve(&size.source))
}

fn status(size: &Size, day: Date) -> String {
    match (size.lifecycle, size.retired_on, size.retires_on) {
        (Lifecycle::Retired, Some(end), _) => {
            let later = size.retired_on_by_region.iter().filter(|(_, end)| **end > day);
            let later = joined(later.map(|(region, end)| format!("{region} {end}")));
            let more = if later.is_empty() { "" } else { "; later in " };
            format!("retired {end}{more}{later}")
        }
        (lifecycle, _, Some(end)) => format!("{}, retires {end}", enum_name(&lifecycle)),
        (Lifecycle::Unknown, ..) => "undocumented: only a price is known".to_owned(),
        (lifecycle, ..) => enum_name(&lifecycle),
    }
}

fn sizes(facts: &Facts, query: &SizeQuery<'_>, region: Option<&str>) -> Result<LookupResult, UsageError> {
    let SizeQuery { gpu, all, today: day, .. } = *query;
    let mut rows: Vec<(&Size, Option<PriceRow<'_>>)> =
        chosen(facts, gpu, |size| all || size.is_on_sale(day))?
            .into_iter()
            .map(|size| (size, prices_of(facts, size, region).into_iter().next()))
            // A size without a price in the region is not offered there.
            .filter(|(_, price)| region.is_none() || price.is_some())
            .collect();
    if rows.is_empty() {
        let suffix = region.map_or_else(String::new, |region| format!(" in {region}"));
        let what = gpu.map_or_else(String::new, |gpu| format!(" with {gpu}"));
        let error = UsageError::new(format!("no size on sale{what} has a known price{suffix}"));
        return Err(if all { error } else { error.hint("--all shows retired and undocumented sizes too") });
    }
    rows.sort_by_key(|(size, price)| {
        let price = price.as_ref().and_then(|row| row.price);
        (price.is_none(), price, size.name.clone())
    });
    let columns = ["size", "GPU", "each", "vCPU", "memory", "USD/h", "USD/GPU-h", "Spot", "region", "status"];
    let gpu_price = |(size, price): &(&Size, Option<PriceRow<'_>>)| {
        price.as_ref().and_then(|row| per_gpu(size, row.price?))
    };
    let json = |row: &(&Size, Option<PriceRow<'_>>)| {
        value(&SizeRow { size: row.0, cheapest: row.1.as_ref(), usd_per_gpu_hour: gpu_price(row) })
    };
    Ok(LookupResult::list_as(&TABLES, &rows, &columns, json, |row| {
        let (size, price) = (row.0, row.1.as_ref());
        vec![
            size.name.clone(),
            gpu_text(size),
            or_dash(size.gpu_memory_gb.map(|gb| format!("{gb} GB"))),
            or_dash(size.vcpu),
            or_dash(size.ram_gib.map(|ram| format!("{ram} GiB"))),
            or_dash(price.and_then(|row| row.price)),
            or_dash(gpu_price(row)),
            or_dash(price.and_then(|row| row.spot)),
            or_dash(price.map(|row| row.region)),
            status(size, day),
        ]
    }))
}
