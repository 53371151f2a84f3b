//! What the owner wants, and how eviction is borne.

use std::time::Duration;

use cudock_plan::{Management, Money, Priority, Spot, Wishes, Work};
use cudock_project::{ManagementWanted, SpotUse};

use super::asking::{Asking, Given, either};
use crate::failure::Failure;

/// Evictions an hour of which nothing is known, as Azure shows them in its lowest band: 0 to 5 percent.
const EVICTIONS: f64 = 0.05;
/// More dollars than anything costs.
const MOST_BUDGET: f64 = 1e12;

impl Asking<'_> {
    pub(super) fn spot(&mut self, work: &Work) -> Result<Option<Spot>, Failure> {
        let (flags, file) = (self.flags, self.file().deploy.spot);
        let options = [
            ("--evictions", flags.evictions.is_some()),
            ("--checkpoint-every", flags.checkpoint_every.is_some()),
        ];
        let option = options.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag);
        if let (Some(false), Some(flag)) = (flags.spot, option) {
            return Err(
                self.lacks(Given::Flag(flag), "it is for Spot machines, and --no-spot rules them out")
            );
        }
        let by_file = file.map(|choice| choice.allowed != SpotUse::No);
        let allowed = if let Some(allowed) = flags.spot.or(option.map(|_| true)).or(by_file) {
            allowed
        } else {
            self.assume(
                "deploy.spot",
                "no Spot machines",
                "assumed; --spot or `spot` in [deploy] allows them",
            );
            false
        };
        if !allowed {
            return Ok(None);
        }
        let file = file.unwrap_or_default();
        let evictions = flags.evictions.as_deref().map(|text| {
            let rate = text
                .parse()
                .ok()
                .filter(|rate: &f64| rate.is_finite() && *rate >= 0.0 && *rate < MOST_BUDGET);
            let problem = || format!("`{text}` is no rate; write evictions an hour, as 0.05");
            rate.ok_or_else(|| self.wrong(Given::Flag("--evictions"), problem(), None))
        });
        let evictions = if let Some(rate) = evictions.transpose()?.or(file.evictions) {
            rate
        } else {
            let source = "assumed; Azure shows rates by size and region in Resource Graph (table SpotResources): \
                              give it with --evictions or `evictions`";
            self.assume("deploy.spot.evictions", format!("{EVICTIONS} an hour"), source);
            EVICTIONS
        };
        let every = flags.checkpoint_every.or(file.checkpoint_every).map(|span| span.0);
        if every.is_some_and(|every| every.is_zero()) {
            return Err(self.wrong(Given::Flag("--checkpoint-every"), "that is no time at all", None));
        }
        let whole = matches!(work, Work::Job { .. } | Work::Sweep { .. });
        if every.is_none() && whole {
            let source = "assumed; --checkpoint-every or `checkpoint_every` says when work is kept";
            self.assume("deploy.spot.checkpoint_every", "none: work starts over after an eviction", source);
        }
        let checkpoint_takes = file.checkpoint_takes.map_or(Duration::ZERO, |span| span.0);
        Ok(Some(Spot {
            evictions_per_hour: thousandths(evictions),
            checkpoint_every: every,
            checkpoint_takes,
        }))
    }

    pub(super) fn wishes(&mut self, work: &Work) -> Result<Wishes, Failure> {
        let (flags, deploy) = (self.flags, &self.file().deploy);
        let regions = match flags.region.as_slice() {
            [] => self.regions(&deploy.regions, Given::Key("deploy.regions"))?,
            names => self.regions(names, Given::Flag("--region"))?,
        };
        let services = match flags.service.as_slice() {
            [] => self.services(&deploy.services, Given::Key("deploy.services"))?,
            names => self.services(names, Given::Flag("--service"))?,
        };
        let sizes = match flags.size.as_slice() {
            [] => self.sizes(&deploy.sizes, Given::Key("deploy.sizes"))?,
            names => self.sizes(names, Given::Flag("--size"))?,
        };
        let only = flags.spot.is_none() && deploy.spot.is_some_and(|choice| choice.allowed == SpotUse::Only);
        let management = flags.management.or(deploy.management.map(|wanted| match wanted {
            ManagementWanted::Own => Management::Own,
            ManagementWanted::Managed => Management::Managed,
            ManagementWanted::Serverless => Management::Serverless,
        }));
        Ok(Wishes {
            regions,
            services,
            sizes,
            priority: only.then_some(Priority::Spot),
            management: management.unwrap_or_default(),
            budget: self.budget()?,
            deadline: self
                .deadline()
                .map(|(deadline, _)| deadline)
                .filter(|_| !matches!(work, Work::Serve { .. })),
            cold_starts_allowed: self.cold_starts(work),
        })
    }

    fn cold_starts(&mut self, work: &Work) -> bool {
        if !matches!(work, Work::Serve { .. }) {
            return true;
        }
        match (self.flags.no_cold_starts, self.file().workload.cold_starts) {
            (true, _) => false,
            (false, Some(allowed)) => allowed,
            (false, None) => {
                let source = "assumed; --no-cold-starts or `cold_starts = false` keeps something up";
                self.assume("workload.cold_starts", "a request may wait for a cold start", source);
                true
            }
        }
    }

    fn budget(&self) -> Result<Option<Money>, Failure> {
        let flag = self.flags.budget.as_deref().map(|text| {
            let number = text.trim().trim_start_matches('$').parse::<f64>().ok();
            let problem = || format!("`{text}` is no budget; write US dollars, as 100 or 12.5");
            let number = number.filter(|number| number.is_finite() && *number > 0.0);
            number.ok_or_else(|| self.wrong(Given::Flag("--budget"), problem(), None))
        });
        let Some((dollars, given)) =
            either(flag.transpose()?, "--budget", self.file().deploy.budget, "deploy.budget")
        else {
            return Ok(None);
        };
        if dollars > MOST_BUDGET {
            return Err(self.wrong(given, "this is more money than there is", None));
        }
        // Budgets are written in cents at the finest; a thousandth of a dollar keeps them exact.
        Ok(Some(Money::from_nanos(u128::from(thousandths(dollars)) * 1_000_000)))
    }
}

/// In thousandths, rounded; what is more than nothing stays more than nothing, and too much stays the most.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before")]
pub(super) fn thousandths(number: f64) -> u64 {
    if number.is_nan() || number <= 0.0 {
        return 0;
    }
    ((number * 1000.0).round().min(1e18) as u64).max(1)
}
