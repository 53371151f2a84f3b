use super::NameMatch;
use crate::tables::{Lifecycle, Size, Sizes};
use crate::version::Date;
use cudock_base::text::suggest;

impl Sizes {
    /// The size with a name, ignoring case; `Standard_` may be omitted.
    pub fn find(&self, name: &str) -> NameMatch<'_, Size> {
        let wanted = bare(name);
        let rows = self.size.iter().filter(|size| bare(&size.name) == wanted).collect();
        let whole = format!("standard_{wanted}");
        NameMatch::from_rows(rows, || {
            suggest::nearest(&whole, self.size.iter().map(|size| size.name.as_str()))
        })
    }

    /// Whether [`Self::find`] finds one.
    pub fn contains(&self, name: &str) -> bool {
        let wanted = bare(name);
        self.size.iter().any(|size| bare(&size.name) == wanted)
    }

    /// The sizes with one of the named GPUs.
    pub fn with_gpu<'a>(&'a self, gpus: &'a [&str]) -> impl Iterator<Item = &'a Size> {
        self.size.iter().filter(move |size| size.gpu.as_deref().is_some_and(|gpu| gpus.contains(&gpu)))
    }
}

impl Size {
    /// Whether it is on sale on a day: not retired by then, and known by more than its price.
    pub fn is_on_sale(&self, day: Date) -> bool {
        self.lifecycle == Lifecycle::Available && self.retires_on.is_none_or(|end| day < end)
    }
}

fn bare(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase();
    name.strip_prefix("standard_").unwrap_or(&name).to_owned()
}
