//! The arithmetic behind each part of a cost.

use cudock_facts::tables::Rounding;

use super::Told;
use crate::cost::places::Transfer;
use crate::cost::price::balancers;
use crate::money::Money;
use crate::placement::PartKind;
use crate::question::Way;
use crate::words::{amount, gb, span};

impl Told<'_, '_, '_> {
    pub(super) fn how(&self, kind: PartKind) -> String {
        let bill = &self.usage.bill;
        match kind {
            PartKind::Compute => self.time(bill.work, ""),
            PartKind::ColdStart => self.time(bill.start, &self.start_words()),
            PartKind::Idle => self.time(bill.idle, "up with nothing to do"),
            PartKind::Evictions => self.time(bill.lost, &self.eviction_words()),
            PartKind::Rounding => self.time(bill.rounding, &self.rounding_words()),
            PartKind::Fee => self.fee_words(),
            PartKind::Disk => self.disk_words(),
            PartKind::Storage => self.storage_words(),
            PartKind::Egress => self.egress_words(),
        }
    }

    /// Time of instances at the hour's price: "3 instances x 0.67 h x $0.526".
    fn time(&self, millis: u128, why: &str) -> String {
        let rate = amount(self.ranked.offer.rate.hour());
        let machines = u128::from(self.usage.machines.max(1));
        let even = millis.is_multiple_of(machines) && machines > 1 && !self.case.question.serves();
        let time = if even {
            format!("{machines} instances x {} h", hours(millis / machines))
        } else {
            format!("{} h", hours(millis))
        };
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        format!("{time} x ${rate}{why}")
    }

    fn start_words(&self) -> String {
        let start = &self.usage.startup;
        let parts = [
            (start.driver, "driver"),
            (start.pull, "pull"),
            (start.unpack, "unpack"),
            (start.stage, "copy of the data"),
            (start.weights, "weights"),
            (start.ready, "program"),
            (start.jit, "compiling"),
        ];
        let listed: Vec<String> = parts
            .into_iter()
            .filter(|(time, _)| *time > 0)
            .map(|(time, name)| format!("{name} {}", span(time)))
            .collect();
        let billed = format!("{} of each start of {} are billed", span(start.billed), span(start.total()));
        let starts = match self.usage.starts {
            0 => String::new(),
            thousandths => format!(", {} starts a month", thousandths.div_ceil(1000)),
        };
        format!("{billed} ({}){starts}", listed.join(", "))
    }

    fn eviction_words(&self) -> String {
        let Some(spot) = &self.case.workload().spot else { return String::new() };
        let rate = thousandths(spot.evictions_per_hour);
        let checkpoints = spot.checkpoint_every.map(|every| span(every.as_millis()));
        let checkpoints =
            checkpoints.map_or("no checkpoint".to_owned(), |every| format!("a checkpoint every {every}"));
        format!(
            "{rate} evictions an hour and instance, {checkpoints}, {} a start",
            span(self.usage.startup.total())
        )
    }

    fn rounding_words(&self) -> String {
        let Some(billing) = self.case.terms.billing else { return String::new() };
        let way = match billing.rounding {
            Rounding::Up => "up",
            Rounding::Down => "down",
            Rounding::Nearest => "to the nearest",
        };
        format!("billed by {} s, rounded {way}", billing.unit_s)
    }

    fn fee_words(&self) -> String {
        let question = self.case.question;
        let Some(place) = question.places.of(question, self.ranked.offer.region) else {
            return String::new();
        };
        let fees = place.fees(self.case.terms.kind);
        let mut words = Vec::new();
        if fees.hour > Money::ZERO {
            let what = match self.case.terms.kind.table_id() {
                "aks" => "cluster, system node, balancer; nothing where a cluster is there already",
                "vm" => "public address",
                "batch" => "balancer and address of the pool",
                _ => "the environment",
            };
            words.push(format!("{} h x ${}/h ({what})", hours(self.usage.lasts), amount(fees.hour)));
        }
        if fees.day > Money::ZERO {
            words.push(format!("{} h x ${}/day (registry)", hours(self.usage.lasts), amount(fees.day)));
        }
        if fees.nodes_day > Money::ZERO && self.usage.machines > 0 {
            let balancers = match balancers(self.usage.machines) {
                1 => String::new(),
                several => format!("{several} x "),
            };
            let (time, price) = (hours(self.usage.lasts), amount(fees.nodes_day));
            words.push(format!("{balancers}{time} h x ${price}/day (balancer for each 50 nodes)"));
        }
        if fees.balancer_hour > Money::ZERO && self.usage.machines > 1 {
            words.push(format!(
                "{} h x ${}/h (balancer)",
                hours(self.usage.lasts),
                amount(fees.balancer_hour)
            ));
        }
        if fees.requests > Money::ZERO && self.usage.requests > 0 {
            let millions = thousandths(u64::try_from(self.usage.requests / 1_000_000).unwrap_or(u64::MAX));
            let price = amount(fees.requests);
            words.push(format!(
                "{millions} million requests x ${price}; a subscription's free ones not taken off"
            ));
        }
        words.join(" + ")
    }

    fn disk_words(&self) -> String {
        let question = self.case.question;
        let place = question.places.of(question, self.ranked.offer.region);
        let (Some(place), Some(tier)) = (place, question.places.os_disk) else { return String::new() };
        let price = amount(place.disk_month.unwrap_or_default());
        let from = if place.disk_elsewhere { ", price of westeurope" } else { "" };
        format!("{} h of a {} of {} GiB x ${price}/month{from}", hours(self.usage.disks), tier.tier, tier.gib)
    }

    fn storage_words(&self) -> String {
        let question = self.case.question;
        let place = question.places.of(question, self.ranked.offer.region);
        let (Some(place), Some(data), Some(store)) = (place, &self.case.workload().data, &question.store)
        else {
            return String::new();
        };
        let prices = place.store;
        let mut words = Vec::new();
        match prices.month {
            Some(month) if month > Money::ZERO => {
                words.push(format!(
                    "{} for {} x ${}/month",
                    gb(data.bytes),
                    span(self.usage.lasts),
                    amount(month)
                ));
            }
            Some(_) => {}
            None => words.push("keeping it has no known price and is not counted".to_owned()),
        }
        if let Some(reads) = prices.reads {
            let count = self.usage.read.div_ceil(u128::from(data.read_size.max(1)));
            words.push(format!("{count} reads x ${}/10,000", amount(reads)));
        }
        if let Some(retrieval) = prices.retrieval {
            words.push(format!("{} fetched x ${}/GB", gb(narrow(self.usage.read)), amount(retrieval)));
        }
        let from = if prices.elsewhere { ", prices of westeurope" } else { "" };
        let way = if self.usage.way == Way::Stage { ", copied first" } else { "" };
        format!("{}{way}: {}{from}", store.name, words.join(" + "))
    }

    fn egress_words(&self) -> String {
        let question = self.case.question;
        let place = question.places.of(question, self.ranked.offer.region);
        let (Some(place), Some(data)) = (place, &self.case.workload().data) else { return String::new() };
        let mut words = Vec::new();
        if data.leaves > 0 {
            let out = amount(place.egress.unwrap_or_default());
            words.push(format!(
                "{} leave Azure: ${out}, a subscription's free ones not taken off",
                gb(data.leaves)
            ));
        }
        if let Transfer::Gb(price) = place.transfer {
            let home = data.region.as_deref().unwrap_or_default();
            words.push(format!("{} from {home} x ${}/GB", gb(narrow(self.usage.read)), amount(price)));
        }
        words.join(" + ")
    }
}

/// Hours with two decimals, with four below ten.
pub(super) fn hours(millis: u128) -> String {
    const HOUR: u128 = 3_600_000;
    if millis >= 10 * HOUR {
        let hundredths = millis.saturating_mul(100).saturating_add(HOUR / 2) / HOUR;
        return format!("{}.{:02}", hundredths / 100, hundredths % 100);
    }
    let parts = (millis * 10_000 + HOUR / 2) / HOUR;
    let text = format!("{}.{:04}", parts / 10_000, parts % 10_000);
    let short = text.trim_end_matches('0');
    let decimals = short.len() - short.find('.').unwrap_or(0);
    text.get(..short.len() + 3_usize.saturating_sub(decimals)).unwrap_or(short).to_owned()
}

/// Thousandths as a decimal number.
pub(super) fn thousandths(count: u64) -> String {
    let (whole, rest) = (count / 1000, count % 1000);
    if rest == 0 {
        return whole.to_string();
    }
    let rest = format!("{rest:03}");
    format!("{whole}.{}", rest.trim_end_matches('0'))
}

fn narrow(bytes: u128) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
