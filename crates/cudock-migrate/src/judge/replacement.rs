//! What to take instead.

use cudock_base::suggest::normalize;
use cudock_facts::Facts;
use cudock_facts::tables::{Profile, Size, Vendor};
use cudock_facts::version::Date;
use serde::Serialize;

use super::change::{self, Change};
use super::fit::Fit;
use super::old::{Gpu, Old, memory_of};
use super::price::{Against, Place, Priced, against, of_profile, of_size};

/// So many are offered where the tables name no replacement.
const OFFERED: usize = 3;

/// What stands in for an old choice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replacement {
    /// The size, or the workload profile of Container Apps.
    pub name: String,
    /// Its series; profiles have none.
    pub series: Option<String>,
    /// `vm` for a size, `container-apps` for a profile.
    pub service: &'static str,
    /// Its GPUs.
    pub gpu: Gpu,
    /// How well it fits.
    pub fit: Fit,
    /// Virtual processors.
    pub vcpu: Option<u32>,
    /// Main memory.
    pub ram_gib: Option<f64>,
    /// What it costs in the region that is meant, or where it is cheapest.
    pub price: Option<Priced>,
    /// Both prices in one region.
    pub against: Option<Against>,
    /// What must change beside the name.
    pub changes: Vec<Change>,
}

/// The sizes that stand in for a size: those that `words` name, by their name or their series.
///
/// A size that is too small is replaced by those of its series that are not; where nothing fits whole, fewer and
/// larger GPUs do; and where even those are missing, what the tables name stands with what it lacks.
pub(super) fn for_size(
    facts: &Facts,
    day: Date,
    place: &Place<'_>,
    (size, old): (Option<&Size>, &Old),
    words: Option<&str>,
) -> Vec<Replacement> {
    let on_sale = |candidate: &&Size| {
        candidate.is_on_sale(day)
            && candidate.documented
            && size.is_none_or(|size| size.name != candidate.name)
    };
    let fit = |candidate: &Size| Gpu::of(facts, candidate).map(|gpu| Fit::of(old.gpu.as_ref(), &gpu));
    let mut chosen: Vec<&Size> = Vec::new();
    for name in words.unwrap_or_default().split([' ', ',']).filter(|word| !word.is_empty()) {
        let Some((exact, series)) = named(facts, name) else { continue };
        let all: Vec<&Size> = facts
            .sizes()
            .size
            .iter()
            .filter(|candidate| candidate.series.as_deref() == Some(series))
            .filter(on_sale)
            .collect();
        let exact = exact.filter(|exact| on_sale(exact));
        let picked = match exact {
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
        chosen = cheapest(facts, place, old, on_sale);
    }
    let mut replacements: Vec<Replacement> = chosen
        .into_iter()
        .filter_map(|candidate| of_candidate(facts, place, (size, old), candidate))
        .collect();
    sort(&mut replacements);
    replacements
}

/// A word of a replacement: a size with its series, or a series.
fn named<'f>(facts: &'f Facts, word: &str) -> Option<(Option<&'f Size>, &'f str)> {
    let wanted = normalize(word);
    let sizes = &facts.sizes().size;
    if let Some(size) = sizes.iter().find(|size| normalize(&size.name) == wanted) {
        return Some((Some(size), size.series.as_deref().unwrap_or_default()));
    }
    let series =
        sizes.iter().filter_map(|size| size.series.as_deref()).find(|series| normalize(series) == wanted)?;
    Some((None, series))
}

/// Those that fit best, unless even they are too small.
fn best<'f>(all: &[&'f Size], fit: impl Fn(&Size) -> Option<Fit>) -> Option<Vec<&'f Size>> {
    [Fit::Whole, Fit::FewerGpus].into_iter().find_map(|wanted| {
        let fitting: Vec<&Size> = all.iter().copied().filter(|size| fit(size) == Some(wanted)).collect();
        (!fitting.is_empty()).then_some(fitting)
    })
}

/// The cheapest sizes of the same maker that fit whole, one a series.
fn cheapest<'f>(
    facts: &'f Facts,
    place: &Place<'_>,
    old: &Old,
    on_sale: impl Fn(&&Size) -> bool,
) -> Vec<&'f Size> {
    let Some(gpu) = &old.gpu else { return Vec::new() };
    let maker = |id: &str| facts.gpus().find(id).one().map_or(Vendor::Nvidia, |gpu| gpu.vendor);
    let mut priced: Vec<(Priced, &Size)> = facts
        .sizes()
        .size
        .iter()
        .filter(on_sale)
        .filter(|size| size.gpu.as_deref().is_some_and(|id| maker(id) == maker(&gpu.id)))
        .filter(|size| Gpu::of(facts, size).is_some_and(|new| Fit::of(Some(gpu), &new) == Fit::Whole))
        .filter_map(|size| Some((of_size(facts, &size.name, place)?, size)))
        .collect();
    priced.sort_by(|(a, left), (b, right)| (a.usd, &left.name).cmp(&(b.usd, &right.name)));
    let mut chosen: Vec<&Size> = Vec::new();
    for (_, size) in priced {
        if chosen.len() < OFFERED && !chosen.iter().any(|other| other.series == size.series) {
            chosen.push(size);
        }
    }
    chosen
}

fn of_candidate(
    facts: &Facts,
    place: &Place<'_>,
    (size, old): (Option<&Size>, &Old),
    candidate: &Size,
) -> Option<Replacement> {
    let gpu = Gpu::of(facts, candidate)?;
    let price = of_size(facts, &candidate.name, place);
    let regions: Vec<&str> = place
        .region
        .into_iter()
        .chain(old.price.as_ref().map(|priced| priced.region.as_str()))
        .chain(price.as_ref().map(|priced| priced.region.as_str()))
        .collect();
    Some(Replacement {
        name: candidate.name.clone(),
        series: candidate.series.clone(),
        service: "vm",
        fit: Fit::of(old.gpu.as_ref(), &gpu),
        vcpu: candidate.vcpu,
        ram_gib: candidate.ram_gib,
        against: against(facts, &old.name, &candidate.name, &regions),
        changes: change::to_size(facts, (size, old), candidate, &gpu),
        price,
        gpu,
    })
}

/// The profiles of Container Apps that stand in for GPUs of a container.
pub(super) fn profiles(facts: &Facts, place: &Place<'_>, old: &Old) -> Vec<Replacement> {
    let fit = |profile: &Profile| Fit::of(old.gpu.as_ref(), &gpu_of(facts, profile));
    let rows = facts.services().profile.iter();
    let best =
        rows.clone().map(|profile| (fit(profile), profile.plan != "consumption", profile.gpu_count)).min();
    let mut replacements: Vec<Replacement> = rows
        // A profile by the second before one that is kept, and no more GPUs than it takes.
        .filter(|profile| Some((fit(profile), profile.plan != "consumption", profile.gpu_count)) == best)
        .map(|profile| {
            let gpu = gpu_of(facts, profile);
            Replacement {
                name: profile.name.clone(),
                series: None,
                service: "container-apps",
                fit: Fit::of(old.gpu.as_ref(), &gpu),
                vcpu: Some(profile.vcpu),
                ram_gib: Some(f64::from(profile.memory_gib)),
                price: of_profile(facts, profile, place),
                against: None,
                changes: change::to_profile(facts, old, profile, &gpu, place),
                gpu,
            }
        })
        .filter(|replacement| replacement.fit != Fit::TooSmall)
        .collect();
    sort(&mut replacements);
    replacements
}

fn gpu_of(facts: &Facts, profile: &Profile) -> Gpu {
    let memory = memory_of(facts, &profile.gpu);
    Gpu::named(facts, profile.gpu.clone(), f64::from(profile.gpu_count), memory)
}

/// The best fit first, then the cheapest, then by name.
fn sort(replacements: &mut [Replacement]) {
    replacements.sort_by(|a, b| {
        let key =
            |one: &Replacement| (one.fit, one.price.is_none(), one.price.as_ref().map(|price| price.usd));
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
}
