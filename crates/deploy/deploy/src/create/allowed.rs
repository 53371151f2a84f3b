//! The regions and sizes in which a workload may run, according to the user and to the resources
//! that it uses.

use cudock_azure::bare_region;
use cudock_base::UsageError;
use cudock_facts::Facts;

use crate::create::request::{DeployRequest, DeploySource};

/// The regions and sizes to choose from. Empty lists allow all.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Allowed {
    pub(crate) regions: Vec<String>,
    pub(crate) sizes: Vec<String>,
    /// Why these regions: ", where the Batch account `shared/gpubatch` is,".
    pub(crate) because: Option<String>,
}

/// Values that the user gave, and their origin: "`--region`".
struct Given<'a> {
    values: &'a [String],
    origin: &'static str,
}

pub(crate) fn allowed(facts: &Facts, request: &DeployRequest<'_>) -> Result<Allowed, UsageError> {
    let (flags, deploy) = (request.flags, &request.project().manifest.deploy);
    let location: Vec<String> = match request.source {
        DeploySource::Group(reading, _) => {
            reading.group.location.as_deref().map(bare_region).into_iter().collect()
        }
        DeploySource::Project(_) => Vec::new(),
    };
    let regions = first_given([
        Given { values: &flags.region, origin: "--region" },
        Given { values: &location, origin: "`location` of the group" },
        Given { values: &deploy.regions, origin: "`regions` under [deploy]" },
    ]);
    let is_by_group = flags.region.is_empty() && !location.is_empty();
    let sizes = first_given([
        Given { values: &flags.size, origin: "--size" },
        Given { values: &deploy.sizes, origin: "`sizes` under [deploy]" },
    ]);
    let mut allowed = Allowed {
        regions: regions.values.to_vec(),
        sizes: sizes.values.to_vec(),
        because: is_by_group.then(|| ", the `location` of the group,".to_owned()),
    };
    let details = &request.existing.details;
    let description = request.existing.description(request.service).unwrap_or_default();
    if let Some(region) = &details.region {
        if !regions.allows(|given| bare_region(given) == *region) {
            let message =
                format!("{description} is in {region}, and {} allows {}", regions.origin, regions.list());
            return Err(UsageError::new(message).hint(format!("use {region}, or name another resource")));
        }
        allowed.regions = vec![region.clone()];
        allowed.because = Some(format!(", where {description} is,"));
    }
    if let Some(existing) = &details.sizes {
        let is_same =
            |one: &str, other: &str| size_name(facts, one).eq_ignore_ascii_case(&size_name(facts, other));
        let usable = existing.iter().filter(|size| sizes.allows(|given| is_same(given, size)));
        let usable: Vec<String> = usable.cloned().collect();
        if usable.is_empty() {
            return Err(no_machines(&description, existing, &sizes));
        }
        allowed.sizes = usable;
    }
    Ok(allowed)
}

/// The machines that exist are not those that are wanted, or there are none with GPUs.
fn no_machines(description: &str, existing: &[String], sizes: &Given<'_>) -> UsageError {
    if existing.is_empty() {
        return UsageError::new(format!("{description} has no GPU workload profile"))
            .hint("add one: az containerapp env workload-profile add, or let cudock create an environment");
    }
    let has = existing.join(", ");
    UsageError::new(format!("{description} has {has}, and {} allows {}", sizes.origin, sizes.list()))
        .hint("leave the size out, or name another resource")
}

impl Given<'_> {
    fn allows(&self, is_wanted: impl Fn(&str) -> bool) -> bool {
        self.values.is_empty() || self.values.iter().any(|value| is_wanted(value))
    }

    fn list(&self) -> String {
        self.values.join(", ")
    }
}

/// The first that is not empty; flags win over files.
fn first_given<const N: usize>(given: [Given<'_>; N]) -> Given<'_> {
    let mut given = given.into_iter();
    given.find(|one| !one.values.is_empty()).unwrap_or(Given { values: &[], origin: "" })
}

/// A size as the tables write it, if they have it.
fn size_name(facts: &Facts, size: &str) -> String {
    facts.sizes().find(size).one().map_or_else(|| size.to_owned(), |row| row.name.clone())
}
