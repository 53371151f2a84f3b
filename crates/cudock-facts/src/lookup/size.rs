use super::Found;
use crate::tables::{Lifecycle, Size, Sizes};
use crate::version::Date;
use cudock_base::suggest;

impl Sizes {
    /// The size with a name; case does not count and `Standard_` may be left out.
    pub fn find(&self, name: &str) -> Found<'_, Size> {
        let wanted = bare(name);
        let rows = self.size.iter().filter(|size| bare(&size.name) == wanted).collect();
        let whole = format!("standard_{wanted}");
        Found::from_rows(rows, || suggest::nearest(&whole, self.size.iter().map(|size| size.name.as_str())))
    }

    /// The sizes with one of the named GPUs.
    pub fn with_gpu<'a>(&'a self, gpus: &'a [&str]) -> impl Iterator<Item = &'a Size> {
        self.size.iter().filter(move |size| size.gpu.as_deref().is_some_and(|gpu| gpus.contains(&gpu)))
    }
}

impl Size {
    /// Whether it can be had on a day, as far as the table tells: not retired by then, and not merely priced.
    pub fn is_on_sale(&self, day: Date) -> bool {
        self.lifecycle == Lifecycle::Available && self.retires_on.is_none_or(|end| day < end)
    }

    /// The day it ends or ended in a region; some regions keep a size longer than the rest.
    pub fn ends_on(&self, region: &str) -> Option<Date> {
        self.retired_on_by_region.get(region).copied().or(self.retired_on).or(self.retires_on)
    }

    /// Whether it can be had in a region on a day, as far as the table tells. A size that is retired may still be sold
    /// where it ends later.
    pub fn is_on_sale_in(&self, region: &str, day: Date) -> bool {
        match (self.lifecycle, self.ends_on(region)) {
            (Lifecycle::Available | Lifecycle::Retired, Some(end)) => day < end,
            (lifecycle, _) => lifecycle == Lifecycle::Available,
        }
    }
}

fn bare(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase();
    name.strip_prefix("standard_").unwrap_or(&name).to_owned()
}
