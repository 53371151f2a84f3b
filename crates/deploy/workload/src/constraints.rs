//! Constraints on the placement, and what a Spot eviction costs.

use std::time::Duration;

use cudock_base::{Rate, UsageError, Usd};
use cudock_plan::{Constraints, Priority, Spot, Work};
use cudock_project::SpotUse;

use crate::assumptions::assumptions;
use crate::builder::{WorkloadBuilder, first_given, flag_or_key, names_of};
use crate::origin::Origin;

impl WorkloadBuilder<'_> {
    pub(crate) fn spot(&mut self, work: &Work) -> Result<Option<Spot>, UsageError> {
        let (flags, file) = (self.flags, self.file().deploy.spot);
        let option = first_given(&[
            ("--evictions", flags.evictions.is_some()),
            ("--checkpoint-every", flags.checkpoint_every.is_some()),
        ]);
        if let (Some(false), Some(flag)) = (flags.allows_spot(), option) {
            return Err(self.incomplete(Origin::Flag(flag), "conflicts with --no-spot"));
        }
        let by_file = file.map(|choice| choice.allowed != SpotUse::No);
        let given = flags.allows_spot().or(option.map(|_| true)).or(by_file);
        let allowed = given.unwrap_or_else(|| self.default(&assumptions().spot));
        if !allowed {
            return Ok(None);
        }
        let file = file.unwrap_or_default();
        let evictions = flags.evictions.as_deref().map(|text| {
            let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate >= 0.0);
            let problem = || format!("invalid rate `{text}`: expected evictions per hour, such as 0.05");
            rate.ok_or_else(|| self.invalid(Origin::Flag("--evictions"), problem(), None))
        });
        let evictions = evictions.transpose()?.or(file.evictions);
        let evictions = evictions.unwrap_or_else(|| self.default(&assumptions().evictions));
        let evictions = Rate::nearest(evictions, Duration::from_secs(3600)).unwrap_or_default();
        let mut every = flags.checkpoint_every.or(file.checkpoint_every).map(|span| span.0);
        if every.is_some_and(|every| every.is_zero()) {
            return Err(self.invalid(Origin::Flag("--checkpoint-every"), "must be longer than zero", None));
        }
        let whole = matches!(work, Work::Job { .. } | Work::Sweep { .. });
        if every.is_none() && whole {
            every = self.default(&assumptions().checkpoint_every).map(|span| span.0);
        }
        let checkpoint_takes = file.checkpoint_takes.map_or(Duration::ZERO, |span| span.0);
        Ok(Some(Spot { evictions, checkpoint_every: every, checkpoint_takes }))
    }

    pub(crate) fn constraints(&mut self, work: &Work) -> Result<Constraints, UsageError> {
        let (flags, deploy) = (self.flags, &self.file().deploy);
        let regions = names_of(&flags.region, "--region", &deploy.regions, "deploy.regions");
        let services = names_of(&flags.service, "--service", &deploy.services, "deploy.services");
        let sizes = names_of(&flags.size, "--size", &deploy.sizes, "deploy.sizes");
        let only = flags.allows_spot().is_none()
            && deploy.spot.is_some_and(|choice| choice.allowed == SpotUse::Only);
        let management = flags.management.or(deploy.management).unwrap_or_default();
        Ok(Constraints {
            regions: self.regions(regions)?,
            services: self.services(services)?,
            sizes: self.sizes(sizes)?,
            priority: only.then_some(Priority::Spot),
            management,
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
            (false, None) => self.default(&assumptions().cold_starts),
        }
    }

    fn budget(&self) -> Result<Option<Usd>, UsageError> {
        let flag = self.flags.budget.as_deref().map(|text| {
            let number = text.trim().trim_start_matches('$').parse::<f64>().ok();
            let problem = || format!("invalid budget `{text}`: expected US dollars, such as 100 or 12.5");
            let number = number.filter(|number| number.is_finite() && *number > 0.0);
            number.ok_or_else(|| self.invalid(Origin::Flag("--budget"), problem(), None))
        });
        let Some((dollars, given)) =
            flag_or_key(flag.transpose()?, "--budget", self.file().deploy.budget, "deploy.budget")
        else {
            return Ok(None);
        };
        let too_much = || self.invalid(given, "exceeds the highest budget, a billion dollars", None);
        Usd::nearest(dollars).map(Some).ok_or_else(too_much)
    }
}
