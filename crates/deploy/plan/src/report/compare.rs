//! Placements to compare, by the names that users give them.

use cudock_base::UsageError;
use cudock_base::text::suggest;

use crate::curve::line::CostLine;
use crate::curve::scan::{Breakpoint, Scan};
use crate::plan::Plan;
use crate::plan::placement::{Placement, Rejection};
use crate::plan::rank::Ranked;
use crate::workload::Priority;
use cudock_facts::services::AzureOffering;

pub struct Candidate<'a> {
    /// Its name as typed.
    pub name: &'a str,
    services: Vec<AzureOffering>,
    size: &'a str,
    region: Option<&'a str>,
    ranked: Option<&'a Ranked>,
    /// The cheapest placement with that name; none if none fits.
    pub placement: Option<Placement>,
}

/// The label of a candidate: a letter.
pub fn label(index: usize) -> String {
    ('A'..='Z').nth(index).map_or_else(|| format!("#{}", index + 1), String::from)
}

impl<'p> Plan<'p> {
    /// Resolves names: `SIZE`, `SERVICE/SIZE` or `SERVICE/SIZE/REGION`, each optionally followed by `/spot` or
    /// `/regular`.
    pub fn candidates<'a>(&'a self, names: &'a [String]) -> Result<Vec<Candidate<'a>>, UsageError> {
        if names.len() < 2 {
            return Err(UsageError::new("--compare needs two or more names")
                .hint("--compare Standard_NC4as_T4_v3,batch/Standard_NC24ads_A100_v4"));
        }
        names.iter().map(|name| self.candidate(name)).collect()
    }

    fn candidate<'a>(&'a self, name: &'a str) -> Result<Candidate<'a>, UsageError> {
        let mut parts: Vec<&str> = name.split('/').map(str::trim).collect();
        let priority = match parts.last() {
            Some(&"spot") => Some(Priority::Spot),
            Some(&"regular") => Some(Priority::Regular),
            _ => None,
        };
        if priority.is_some() {
            parts.pop();
        }
        let (services, size, region) = match parts.as_slice() {
            [size] => (AzureOffering::ALL.to_vec(), *size, None),
            [service, size] => (services_named(service)?, *size, None),
            [service, size, region] => (services_named(service)?, *size, Some(self.region_named(region)?)),
            _ => {
                return Err(UsageError::new(format!("invalid name `{name}`"))
                    .hint("write SIZE, SERVICE/SIZE or SERVICE/SIZE/REGION"));
            }
        };
        let size = self.size_named(size)?;
        let cheapest = |service| self.find(service, size, region, priority);
        let ranked = services.iter().filter_map(|service| cheapest(*service)).min_by_key(|ranked| {
            let offer = &ranked.offer;
            (ranked.total, ranked.time, offer.service, offer.region, offer.priority)
        });
        let placement = ranked.map(|ranked| self.placement(ranked));
        Ok(Candidate { name, services, size, region, ranked, placement })
    }

    fn region_named(&self, name: &str) -> Result<&'p str, UsageError> {
        let wanted = suggest::normalize(name);
        let catalog = self.context.catalog;
        let names = || catalog.regions().map(|region| catalog.region_name(region));
        names().find(|known| suggest::normalize(known) == wanted).ok_or_else(|| {
            UsageError::new(format!("unknown region `{name}`")).near(&suggest::nearest(name, names()))
        })
    }

    /// Why a candidate has no placement: its rejections, or that it is not offered.
    pub fn rejection_reasons(&self, candidate: &Candidate<'_>) -> Vec<String> {
        let about = |rejection: &&Rejection| {
            let regions = rejection.region.as_deref().zip(candidate.region);
            rejection.is_about(&candidate.services, candidate.size)
                && regions.is_none_or(|(rejected, named)| rejected == named)
        };
        let describe = |rejection: &Rejection| {
            let service = rejection.service.map_or("anywhere", AzureOffering::id);
            format!("{service}: {} [{}]", rejection.reason, rejection.code)
        };
        let mut reasons: Vec<String> = self.rejected().iter().filter(about).map(describe).collect();
        reasons.dedup();
        if reasons.is_empty() {
            reasons.push("no offer with a known price".to_owned());
        }
        reasons
    }

    /// The points at which the cheapest of the candidates that fit changes.
    pub fn candidate_breakpoints(&self, scan: &Scan, candidates: &[Candidate<'_>]) -> Vec<Breakpoint> {
        let fitting = candidates.iter().enumerate();
        let fitting = fitting.filter_map(|(index, candidate)| Some((index, candidate, candidate.ranked?)));
        let lines: Vec<CostLine> = fitting
            .map(|(index, candidate, ranked)| {
                scan.line(self, format!("{} {}", label(index), candidate.name), ranked.offer)
            })
            .collect();
        scan.breakpoints(self, &lines)
    }
}

fn services_named(name: &str) -> Result<Vec<AzureOffering>, UsageError> {
    let found = AzureOffering::named(name);
    if found.is_empty() {
        let near = suggest::nearest(name, AzureOffering::ALL.map(AzureOffering::id));
        return Err(UsageError::new(format!("unknown service `{name}`")).near(&near));
    }
    Ok(found)
}
