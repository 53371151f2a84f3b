//! Azure's sizes, services and storage.

use cudock_facts::lookup::Found;
use cudock_facts::tables::{Lifecycle, PriceRow, ServiceGpu, Size};
use cudock_facts::{Facts, suggest};
use serde_json::{Value, json};

use super::sheet::{Answer, List, Sheet, View, joined, value, word};
use crate::cli::FactsArgs;
use crate::failure::Failure;
use crate::output;

const SIZE_TABLES: [&str; 3] = ["azure_sizes", "azure_prices", "gpus"];

pub(super) fn size(facts: &Facts, words: &FactsArgs) -> Result<Answer, Failure> {
    let region = words.region.as_deref().map(|region| known_region(facts, region)).transpose()?;
    match (&words.name, &words.gpu) {
        (Some(_), Some(_)) => Err(Failure::input("a size's name and --gpu exclude each other")),
        (Some(name), None) => one_size(facts, name, region),
        (None, gpu) => sizes(facts, gpu.as_deref(), region, words.all),
    }
}

fn known_region<'a>(facts: &'a Facts, region: &str) -> Result<&'a str, Failure> {
    let wanted = suggest::folded(region);
    let mut regions = facts.prices().regions();
    regions.find(|known| suggest::folded(known) == wanted).ok_or_else(|| {
        let near = suggest::nearest(region, facts.prices().regions());
        Failure::input(format!("no price is known for a region `{region}`")).near(&near)
    })
}

fn one_size(facts: &Facts, name: &str, region: Option<&str>) -> Result<Answer, Failure> {
    let size = match facts.sizes().find(name) {
        Found::One(size) => size,
        Found::Several(_) => return Err(Failure::input(format!("`{name}` stands for several sizes"))),
        Found::Nothing(near) => {
            let failure = Failure::input(format!("no Azure size is called `{name}`")).near(&near);
            let outdated = facts
                .sizes()
                .outdated
                .iter()
                .find(|row| row.choice.to_ascii_lowercase().contains(&name.to_ascii_lowercase()));
            return Err(match outdated {
                Some(row) => {
                    let instead =
                        row.use_instead.as_ref().map_or_else(String::new, |names| format!(" Use {names}."));
                    failure.hint(format!("{}{instead}", row.status))
                }
                None => failure.hint("`cudock facts size` lists the sizes on sale"),
            });
        }
    };
    let mut prices: Vec<PriceRow<'_>> = facts
        .prices()
        .of_size(&size.name)
        .filter(|row| region.is_none_or(|region| row.region == region))
        .collect();
    prices.sort_by_key(|row| (row.price.is_none(), row.price, row.region.to_owned()));
    let row = json!({ "size": size, "prices": prices });
    Ok(Answer {
        tables: SIZE_TABLES.to_vec(),
        rows: vec![row],
        view: View::Sheets(vec![size_sheet(facts, size, &prices)]),
    })
}

fn size_sheet(facts: &Facts, size: &Size, prices: &[PriceRow<'_>]) -> Sheet {
    let gpu = size.gpu.as_ref().map(|gpu| {
        let memory = size.gpu_memory_gb.map_or_else(String::new, |memory| format!(", {memory} GB each"));
        let board = size.gpu_board.as_ref().map_or_else(String::new, |board| format!(" ({board})"));
        format!("{} x {gpu}{board}{memory}", count(size))
    });
    let capability = size.gpu.as_deref().and_then(|gpu| facts.gpus().find(gpu).one()?.capability);
    let cheapest = prices.iter().take(5).map(|row| {
        let spot = row.spot.map_or_else(String::new, |spot| format!(", Spot ${spot}"));
        let price = row.price.map_or_else(|| "-".to_owned(), |price| format!("${price}"));
        let date = row.price_date.map_or_else(String::new, |date| format!(" ({date})"));
        format!("{} {price}{spot}{date}", row.region)
    });
    let more = prices.len().saturating_sub(5);
    let mut cheapest: Vec<String> = cheapest.collect();
    if cheapest.is_empty() {
        cheapest.push("none known".to_owned());
    }
    if more > 0 {
        cheapest.push(format!("and {more} more regions, with --format json"));
    }
    Sheet::new(size.name.clone())
        .field("status", status(size))
        .maybe("series", size.series.as_ref())
        .maybe("GPU", gpu)
        .maybe("capability", capability)
        .maybe("vCPU", size.vcpu)
        .maybe("memory", size.ram_gib.map(|ram| format!("{ram} GiB")))
        .field("CPU", size.cpu_arch.clone())
        .maybe("driver", size.driver.map(|driver| word(&driver)))
        .maybe("temporary disk", size.temp_disk_gib.map(|gib| format!("{gib} GiB")))
        .maybe(
            "NVMe",
            size.nvme_gib.map(|gib| format!("{gib} GiB in {} disks", size.nvme_disks.unwrap_or(1))),
        )
        .maybe("network", size.network_mbps.map(|mbps| format!("{} Gb/s", f64::from(mbps) / 1000.0)))
        .maybe("InfiniBand", size.infiniband_gbps.map(|gbps| format!("{gbps} Gb/s")))
        .maybe("NVLink", size.nvlink.as_ref())
        .maybe("quota family", size.quota_family.as_ref())
        .field("generations", joined(&size.generations))
        .field("USD per hour", cheapest.join("\n"))
        .maybe("instead", size.replacement.as_ref())
        .maybe("note", size.note.as_ref())
        .sources(facts.sizes().table.resolve(&size.source))
}

fn count(size: &Size) -> String {
    match size.gpu_count {
        Some(count) if count < 1.0 => format!("1/{:.0}", 1.0 / count),
        Some(count) => count.to_string(),
        None => "?".to_owned(),
    }
}

fn status(size: &Size) -> String {
    let day = output::today();
    match (size.lifecycle, size.retired_on, size.retires_on) {
        (Lifecycle::Retired, Some(end), _) => {
            let later = size.retired_on_by_region.iter().filter(|(_, end)| **end > day);
            let later = joined(later.map(|(region, end)| format!("{region} {end}")));
            if later.is_empty() {
                format!("retired {end}")
            } else {
                format!("retired {end}; later in {later}")
            }
        }
        (lifecycle, _, Some(end)) => format!("{}, retires {end}", word(&lifecycle)),
        (Lifecycle::Unknown, ..) => "undocumented: only a price was seen".to_owned(),
        (lifecycle, ..) => word(&lifecycle),
    }
}

fn sizes(facts: &Facts, gpu: Option<&str>, region: Option<&str>, all: bool) -> Result<Answer, Failure> {
    let ids: Option<Vec<&str>> = match gpu {
        None => None,
        Some(gpu) => match facts.gpus().find(gpu) {
            Found::Nothing(near) => {
                return Err(Failure::input(format!("no GPU is called `{gpu}`")).near(&near));
            }
            found => Some(found.rows().into_iter().map(|gpu| gpu.id.as_str()).collect()),
        },
    };
    let day = output::today();
    let fits = |size: &&Size| {
        let gpu = ids.as_ref().is_none_or(|ids| size.gpu.as_deref().is_some_and(|gpu| ids.contains(&gpu)));
        gpu && (all || size.is_on_sale(day))
    };
    let mut rows: Vec<(&Size, Option<PriceRow<'_>>)> = Vec::new();
    for size in facts.sizes().size.iter().filter(fits) {
        let mut prices: Vec<PriceRow<'_>> = facts
            .prices()
            .of_size(&size.name)
            .filter(|row| region.is_none_or(|region| row.region == region))
            .collect();
        prices.sort_by_key(|row| (row.price.is_none(), row.price));
        // With a region named, a size without a price there is not offered there.
        if region.is_none() || !prices.is_empty() {
            rows.push((size, prices.into_iter().next()));
        }
    }
    if rows.is_empty() {
        let place = region.map_or_else(String::new, |region| format!(" in {region}"));
        let what = gpu.map_or_else(String::new, |gpu| format!(" with {gpu}"));
        let failure = Failure::input(format!("no size on sale{what} has a known price{place}"));
        return Err(if all {
            failure
        } else {
            failure.hint("--all shows retired and undocumented sizes too")
        });
    }
    rows.sort_by_key(|(size, price)| {
        let price = price.as_ref().and_then(|row| row.price);
        (price.is_none(), price, size.name.clone())
    });
    let cells = |(size, price): &(&Size, Option<PriceRow<'_>>)| {
        let text = |item: Option<String>| item.unwrap_or_else(|| "-".to_owned());
        let usd = |usd: Option<cudock_facts::tables::Usd>| text(usd.map(|usd| usd.to_string()));
        vec![
            size.name.clone(),
            size.gpu.as_ref().map_or_else(|| "-".to_owned(), |gpu| format!("{} x {gpu}", count(size))),
            text(size.gpu_memory_gb.map(|gb| format!("{gb} GB"))),
            text(size.vcpu.map(|vcpu| vcpu.to_string())),
            text(size.ram_gib.map(|ram| format!("{ram} GiB"))),
            usd(price.as_ref().and_then(|row| row.price)),
            usd(price.as_ref().and_then(|row| row.spot)),
            price.as_ref().map_or_else(|| "-".to_owned(), |row| row.region.to_owned()),
            status(size),
        ]
    };
    let columns = vec!["size", "GPU", "each", "vCPU", "memory", "USD/h", "Spot", "region", "status"];
    let list = List { columns, rows: rows.iter().map(cells).collect() };
    let json =
        rows.iter().map(|(size, price)| json!({ "size": size, "cheapest": price })).collect::<Vec<Value>>();
    Ok(Answer { tables: SIZE_TABLES.to_vec(), rows: json, view: View::List(list) })
}

pub(super) fn service(facts: &Facts, name: Option<&str>) -> Result<Answer, Failure> {
    let services = facts.services();
    let tables = vec!["azure_services"];
    let Some(name) = name else {
        let rows = services.service.iter().map(|service| {
            let gpu = match (service.gpu, service.gpu_retired_on) {
                (ServiceGpu::Available, _) => "yes".to_owned(),
                (ServiceGpu::Retired, Some(end)) => format!("ended {end}"),
                (ServiceGpu::Retired, None) => "ended".to_owned(),
            };
            let word = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
            vec![
                service.id.clone(),
                service.name.clone(),
                gpu,
                word(service.per_second),
                word(service.scale_to_zero),
            ]
        });
        let columns = vec!["service", "name", "GPU", "by the second", "scales to zero"];
        let list = List { columns, rows: rows.collect() };
        return Ok(Answer {
            tables,
            rows: services.service.iter().map(value).collect(),
            view: View::List(list),
        });
    };
    let service =
        services.service.iter().find(|service| service.id.eq_ignore_ascii_case(name)).ok_or_else(|| {
            let near = suggest::nearest(name, services.service.iter().map(|service| service.id.as_str()));
            Failure::input(format!("no service is called `{name}`"))
                .near(&near)
                .hint("`cudock facts service` lists them")
        })?;
    let limits: Vec<_> = services.limit.iter().filter(|row| row.service == service.id).collect();
    let profiles: Vec<_> = services.profile.iter().filter(|row| row.service == service.id).collect();
    let drivers: Vec<_> = services.driver.iter().filter(|row| row.service == service.id).collect();
    let behaviour: Vec<_> = services.behaviour.iter().filter(|row| row.service == service.id).collect();
    let mut sheet = Sheet::new(format!("{} ({})", service.name, service.id))
        .field(
            "GPU",
            match service.gpu_retired_on {
                Some(end) => format!("ended {end}"),
                None => word(&service.gpu),
            },
        )
        .maybe("", service.gpu_note.as_ref())
        .maybe("instead", service.replacement.as_ref())
        .field("billing", service.billing.clone())
        .maybe("Spot", service.spot.as_ref())
        .maybe("GPUs each", service.gpus_per_instance.as_ref())
        .field("CPU", joined(&service.cpu_arch))
        .maybe("image up to", service.max_image_gb.map(|gb| format!("{gb} GB")))
        .field("quota", service.quota.clone())
        .maybe("cold start", service.cold_start.as_ref());
    for profile in &profiles {
        sheet = sheet.field(
            "profile",
            format!(
                "{}: {} x {}, {} vCPU, {} GiB, in {}",
                profile.name,
                profile.gpu_count,
                profile.gpu,
                profile.vcpu,
                profile.memory_gib,
                joined(&profile.regions)
            ),
        );
    }
    for driver in &drivers {
        let version = driver.version.map_or_else(String::new, |version| format!(" {version}"));
        sheet = sheet.field("driver", format!("{}: {}{version}", driver.applies_to, word(&driver.kind)));
    }
    for row in &limits {
        sheet = sheet.field("limit", format!("{}: {}", row.key, row.value));
    }
    for row in &behaviour {
        sheet = sheet.field("know", row.text.clone());
    }
    let row = json!({ "service": service, "profiles": profiles, "drivers": drivers, "limits": limits, "behaviour": behaviour });
    let sheet = sheet.sources(services.table.resolve(&service.source));
    Ok(Answer { tables, rows: vec![row], view: View::Sheets(vec![sheet]) })
}

pub(super) fn storage(facts: &Facts, name: Option<&str>) -> Result<Answer, Failure> {
    let storage = facts.storage();
    let tables = vec!["azure_storage"];
    let Some(name) = name else {
        let rows = storage.storage.iter().map(|row| {
            let text = |item: Option<String>| item.unwrap_or_else(|| "-".to_owned());
            vec![
                row.id.clone(),
                row.name.clone(),
                word(&row.kind),
                text(row.max_mbps.map(|mbps| format!("{mbps} MB/s"))),
                text(row.max_iops.map(|iops| iops.to_string())),
            ]
        });
        let list =
            List { columns: vec!["storage", "name", "kind", "throughput", "IOPS"], rows: rows.collect() };
        return Ok(Answer {
            tables,
            rows: storage.storage.iter().map(value).collect(),
            view: View::List(list),
        });
    };
    let row = storage.storage.iter().find(|row| row.id.eq_ignore_ascii_case(name)).ok_or_else(|| {
        let near = suggest::nearest(name, storage.storage.iter().map(|row| row.id.as_str()));
        Failure::input(format!("no storage is called `{name}`"))
            .near(&near)
            .hint("`cudock facts storage` lists them")
    })?;
    let prices: Vec<_> = storage.price.iter().filter(|price| price.storage == row.id).collect();
    let limits: Vec<_> = storage.limit.iter().filter(|limit| limit.storage == row.id).collect();
    let sheet = Sheet::new(format!("{} ({})", row.name, row.id))
        .field("kind", word(&row.kind))
        .maybe("capacity", row.max_gib.map(|gib| format!("{gib} GiB")))
        .maybe("throughput", row.max_mbps.map(|mbps| format!("{mbps} MB/s")))
        .maybe("IOPS", row.max_iops)
        .field(
            "USD",
            prices
                .iter()
                .map(|price| format!("{} {} ({}, {})", price.meter, price.usd, price.region, price.as_of))
                .collect::<Vec<_>>()
                .join("\n"),
        )
        .field(
            "limits",
            limits
                .iter()
                .map(|limit| format!("{}: {}", limit.key, limit.value))
                .collect::<Vec<_>>()
                .join("\n"),
        )
        .maybe("note", row.note.as_ref())
        .sources(storage.table.resolve(&row.source));
    Ok(Answer {
        tables,
        rows: vec![json!({ "storage": row, "prices": prices, "limits": limits })],
        view: View::Sheets(vec![sheet]),
    })
}
