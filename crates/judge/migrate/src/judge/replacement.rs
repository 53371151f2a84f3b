//! Selects replacements.

use cudock_base::text::suggest::normalize;
use cudock_facts::Facts;
use cudock_facts::tables::{Profile, Size, Vendor};
use schemars::JsonSchema;
use serde::Serialize;

use super::Assessor;
use super::change::{self, Change};
use super::fit::Fit;
use super::old::{MachineGpu, OldMachine, memory_of};
use super::price::{HourlyPrice, PriceComparison, compare};

/// The number of replacements if the tables name none.
const MAX_REPLACEMENTS: usize = 3;

/// A replacement for an old choice.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Replacement {
    /// The size, or the workload profile of Container Apps.
    pub name: String,
    /// Its series; profiles have none.
    pub series: Option<String>,
    /// `vm` for a size, `container-apps` for a profile.
    pub service: &'static str,
    pub gpu: MachineGpu,
    /// How well it fits.
    pub fit: Fit,
    /// Virtual processors.
    pub vcpu: Option<u32>,
    /// Main memory.
    pub ram_gib: Option<f64>,
    /// Its price in the region, or where it is cheapest.
    pub price: Option<HourlyPrice>,
    /// Both prices in one region.
    pub against: Option<PriceComparison>,
    /// What must change besides the name.
    pub changes: Vec<Change>,
}

impl<'a> Assessor<'a> {
    /// The sizes that replace a size: those that `names` lists, by their name or their series.
    ///
    /// A size that is too small is replaced by those of its series that are not. If nothing fits whole, fewer and larger
    /// GPUs do; if there are none, the size from the tables is kept with what it lacks.
    pub(super) fn sizes_for(
        &self,
        (size, old): (Option<&Size>, &OldMachine),
        names: Option<&str>,
    ) -> Vec<Replacement> {
        let facts = self.facts;
        let on_sale = |candidate: &&Size| {
            candidate.is_on_sale(self.day)
                && candidate.documented
                && size.is_none_or(|size| size.name != candidate.name)
        };
        let fit =
            |candidate: &Size| MachineGpu::of(facts, candidate).map(|gpu| Fit::of(old.gpu.as_ref(), &gpu));
        let mut chosen: Vec<&Size> = Vec::new();
        for name in names.unwrap_or_default().split([' ', ',']).filter(|name| !name.is_empty()) {
            let Some((exact, series)) = named(facts, name) else { continue };
            let all = facts.sizes().size.iter().filter(|row| row.series.as_deref() == Some(series));
            let all: Vec<&Size> = all.filter(on_sale).collect();
            let picked = match exact.filter(on_sale) {
                Some(exact) if fit(exact) == Some(Fit::Whole) => vec![exact],
                exact => best(&all, fit).unwrap_or_else(|| exact.into_iter().collect()),
            };
            for candidate in picked {
                if !chosen.iter().any(|other| other.name == candidate.name) {
                    chosen.push(candidate);
                }
            }
        }
        if chosen.is_empty() {
            chosen = self.cheapest(old, on_sale);
        }
        let candidates = chosen.into_iter();
        sorted(candidates.filter_map(|candidate| self.candidate((size, old), candidate)).collect())
    }

    /// The cheapest sizes of the same vendor that fit whole, one per series.
    fn cheapest(&self, old: &OldMachine, on_sale: impl Fn(&&Size) -> bool) -> Vec<&'a Size> {
        let facts = self.facts;
        let Some(gpu) = &old.gpu else { return Vec::new() };
        let vendor = |id: &str| facts.gpus().find(id).one().map_or(Vendor::Nvidia, |gpu| gpu.vendor);
        let sizes = facts.sizes().size.iter().filter(on_sale);
        let mut priced: Vec<(HourlyPrice, &Size)> = sizes
            .filter(|size| size.gpu.as_deref().is_some_and(|id| vendor(id) == vendor(&gpu.id)))
            .filter(|size| {
                MachineGpu::of(facts, size).is_some_and(|new| Fit::of(Some(gpu), &new) == Fit::Whole)
            })
            .filter_map(|size| Some((self.price_of(&size.name)?, size)))
            .collect();
        priced.sort_by(|(a, left), (b, right)| (a.usd, &left.name).cmp(&(b.usd, &right.name)));
        let mut chosen: Vec<&Size> = Vec::new();
        for (_, size) in priced {
            if chosen.len() < MAX_REPLACEMENTS && !chosen.iter().any(|other| other.series == size.series) {
                chosen.push(size);
            }
        }
        chosen
    }

    fn candidate(&self, (size, old): (Option<&Size>, &OldMachine), candidate: &Size) -> Option<Replacement> {
        let gpu = MachineGpu::of(self.facts, candidate)?;
        let price = self.price_of(&candidate.name);
        let priced = [&old.price, &price].into_iter().flatten().map(|price| price.region.as_str());
        let regions: Vec<&str> = self.region.into_iter().chain(priced).collect();
        Some(Replacement {
            name: candidate.name.clone(),
            series: candidate.series.clone(),
            service: "vm",
            fit: Fit::of(old.gpu.as_ref(), &gpu),
            vcpu: candidate.vcpu,
            ram_gib: candidate.ram_gib,
            against: compare(self.facts, &old.name, &candidate.name, &regions),
            changes: change::to_size(self.facts, (size, old), candidate, &gpu),
            price,
            gpu,
        })
    }

    /// The profiles of Container Apps that replace GPUs of a container.
    pub(super) fn profiles_for(&self, old: &OldMachine) -> Vec<Replacement> {
        let fit = |profile: &Profile| Fit::of(old.gpu.as_ref(), &gpu_of(self.facts, profile));
        // Profiles billed by the second come before dedicated ones, and with no more GPUs than needed.
        let key = |profile: &Profile| (fit(profile), profile.plan != "consumption", profile.gpu_count);
        let rows = self.facts.services().profile.iter();
        let best = rows.clone().map(key).min();
        let replacements = rows.filter(|profile| Some(key(profile)) == best).map(|profile| {
            let gpu = gpu_of(self.facts, profile);
            Replacement {
                name: profile.name.clone(),
                series: None,
                service: "container-apps",
                fit: fit(profile),
                vcpu: Some(profile.vcpu),
                ram_gib: Some(f64::from(profile.memory_gib)),
                price: self.price_of_profile(profile),
                against: None,
                changes: change::to_profile(self.facts, old, profile, &gpu, self.region),
                gpu,
            }
        });
        sorted(replacements.filter(|replacement| replacement.fit != Fit::TooSmall).collect())
    }
}

/// A size with its series, or a series.
fn named<'f>(facts: &'f Facts, name: &str) -> Option<(Option<&'f Size>, &'f str)> {
    let wanted = normalize(name);
    let sizes = &facts.sizes().size;
    if let Some(size) = sizes.iter().find(|size| normalize(&size.name) == wanted) {
        return Some((Some(size), size.series.as_deref().unwrap_or_default()));
    }
    let series =
        sizes.iter().filter_map(|size| size.series.as_deref()).find(|series| normalize(series) == wanted)?;
    Some((None, series))
}

/// The sizes that fit best, unless all are too small.
fn best<'f>(all: &[&'f Size], fit: impl Fn(&Size) -> Option<Fit>) -> Option<Vec<&'f Size>> {
    [Fit::Whole, Fit::FewerGpus].into_iter().find_map(|wanted| {
        let fitting: Vec<&Size> = all.iter().copied().filter(|size| fit(size) == Some(wanted)).collect();
        (!fitting.is_empty()).then_some(fitting)
    })
}

fn gpu_of(facts: &Facts, profile: &Profile) -> MachineGpu {
    let memory = memory_of(facts, &profile.gpu);
    MachineGpu::named(facts, profile.gpu.clone(), f64::from(profile.gpu_count), memory)
}

/// The best fit first, then the cheapest, then by name.
fn sorted(mut replacements: Vec<Replacement>) -> Vec<Replacement> {
    replacements.sort_by(|a, b| {
        let key =
            |one: &Replacement| (one.fit, one.price.is_none(), one.price.as_ref().map(|price| price.usd));
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
    replacements
}
