//! Offers: a size of a service in a region at a price.

use cudock_base::Usd;
use cudock_facts::version::Date;

use crate::workload::Priority;
use cudock_facts::services::AzureOffering;

/// A size or workload profile of a [`crate::Catalog`]. Ids follow the order of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SizeId(pub u16);

/// A region of a [`crate::Catalog`]. Ids follow the order of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub u16);

/// The source of a price in a [`crate::Catalog`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub u16);

macro_rules! index {
    ($($id:ty),+) => {
        $(impl $id {
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        })+
    };
}
index!(SizeId, RegionId, SourceId);

/// A size of a service in a region, at a priority and a price. Small and plain: there are more than ten thousand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Price per hour of an instance.
    pub rate: Usd,
    pub date: Date,
    pub size: SizeId,
    pub region: RegionId,
    pub source: SourceId,
    pub service: AzureOffering,
    pub priority: Priority,
    /// Whether the price was derived from others because none was found.
    pub assumed: bool,
}

impl Offer {
    /// An offer whose price has no known source.
    pub const fn new(
        service: AzureOffering,
        size: SizeId,
        region: RegionId,
        priority: Priority,
        rate: Usd,
        date: Date,
    ) -> Self {
        Self { rate, date, size, region, source: SourceId(u16::MAX), service, priority, assumed: false }
    }

    /// The sort key: offers that are evaluated together are adjacent.
    pub(crate) fn key(&self) -> (u8, SizeId, Priority, RegionId, Usd, Date) {
        (self.service.index(), self.size, self.priority, self.region, self.rate, self.date)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_small() {
        assert!(size_of::<Offer>() <= 32, "{}", size_of::<Offer>());
    }
}
