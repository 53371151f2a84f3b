//! Looks up Azure services.

use cudock_base::UsageError;

use crate::Facts;
use crate::sheets::result::{LookupResult, Sheet, by_id, cells, enum_name, joined};
use crate::sheets::rows::ServiceRow;
use crate::tables::{Profile, ServiceGpu};

const TABLES: [&str; 1] = ["azure_services"];

/// Azure services, or one of them with its limits.
pub fn service(facts: &Facts, name: Option<&str>) -> Result<LookupResult, UsageError> {
    let services = facts.services();
    let Some(name) = name else {
        let columns = ["service", "name", "GPU", "by the second", "scales to zero"];
        return Ok(LookupResult::list(&TABLES, &services.service, &columns, |service| {
            let gpu = match (service.gpu, service.gpu_retired_on) {
                (ServiceGpu::Available, _) => "yes".to_owned(),
                (ServiceGpu::Retired, Some(end)) => format!("ended {end}"),
                (ServiceGpu::Retired, None) => "ended".to_owned(),
            };
            let yes_no = |yes: bool| if yes { "yes" } else { "no" };
            let (per_second, to_zero) = (yes_no(service.per_second), yes_no(service.scale_to_zero));
            cells(&[&service.id, &service.name, &gpu, &per_second, &to_zero])
        }));
    };
    let service = by_id(&services.service, |service| &service.id, "service", name)?;
    let limits: Vec<_> = services.limit.iter().filter(|row| row.service == service.id).collect();
    let profiles: Vec<_> = services.profile.iter().filter(|row| row.service == service.id).collect();
    let drivers: Vec<_> = services.driver.iter().filter(|row| row.service == service.id).collect();
    let behavior: Vec<_> = services.behavior.iter().filter(|row| row.service == service.id).collect();
    let ended = service.gpu_retired_on.map(|end| format!("ended {end}"));
    let mut sheet = Sheet::new(format!("{} ({})", service.name, service.id))
        .field("GPU", ended.unwrap_or_else(|| enum_name(&service.gpu)))
        .maybe("", service.gpu_note.as_ref())
        .maybe("replacement", service.replacement.as_ref())
        .field("billing", service.billing.clone())
        .maybe("Spot", service.spot.as_ref())
        .maybe("GPUs each", service.gpus_per_instance.as_ref())
        .field("CPU", joined(&service.cpu_arch))
        .maybe("image up to", service.max_image_gb.map(|gb| format!("{gb} GB")))
        .field("quota", service.quota.clone())
        .maybe("cold start", service.cold_start.as_ref());
    for profile in &profiles {
        let Profile { name, gpu_count, gpu, vcpu, memory_gib, regions, .. } = profile;
        let regions = joined(regions);
        let profile = format!("{name}: {gpu_count} x {gpu}, {vcpu} vCPU, {memory_gib} GiB, in {regions}");
        sheet = sheet.field("profile", profile);
    }
    for driver in &drivers {
        let version = driver.version.map_or_else(String::new, |version| format!(" {version}"));
        sheet = sheet.field("driver", format!("{}: {}{version}", driver.applies_to, enum_name(&driver.kind)));
    }
    for row in &limits {
        sheet = sheet.field("limit", format!("{}: {}", row.key, row.value));
    }
    for row in &behavior {
        sheet = sheet.field("note", row.text.clone());
    }
    let row = ServiceRow { service, profiles, drivers, limits, behavior };
    let sheet = sheet.sources(services.table.resolve(&service.source));
    Ok(LookupResult::sheet(&TABLES, &row, sheet))
}
