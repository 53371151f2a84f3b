//! The data that a workload reads.

use cudock_base::UsageError;
use cudock_plan::DataNeeds;
use cudock_project::ByteSize;

use crate::assumptions::assumptions;
use crate::builder::{WorkloadBuilder, first_given, flag_or_key};
use crate::origin::Origin;

impl WorkloadBuilder<'_> {
    pub(crate) fn data(&mut self) -> Result<Option<DataNeeds>, UsageError> {
        let (flags, file) = (self.flags, &self.file().data);
        let Some((ByteSize(bytes), given)) = flag_or_key(flags.data, "--data", file.size, "data.size") else {
            return self.data_without_size();
        };
        if bytes == 0 {
            return Err(self.invalid(given, "must be larger than zero; omit it without data", None));
        }
        let storage =
            flag_or_key(flags.storage.as_deref(), "--storage", file.storage.as_deref(), "data.storage");
        let storage = match storage {
            Some((name, given)) => self.storage(name, given)?,
            None => self.default(&assumptions().storage),
        };
        let region =
            flag_or_key(flags.data_region.clone(), "--data-region", file.region.clone(), "data.region");
        let region = match region {
            Some((name, given)) => self.regions((&[name], given))?.pop(),
            None => None,
        };
        let rate = flag_or_key(
            flags.data_rate.map(|size| size.0),
            "--data-rate",
            file.rate.map(|rate| rate.0),
            "data.rate",
        );
        let rate = self.above_zero(rate, "must be larger than zero")?;
        let access = file.access.unwrap_or_else(|| self.default(&assumptions().access));
        let passes = file.passes.unwrap_or(1);
        let ByteSize(read_size) = file.read_size.unwrap_or_else(|| self.default(&assumptions().read_size));
        let rate_per_gpu = rate.or_else(|| self.default(&assumptions().data_rate));
        let leaves = file.leaves.map_or(0, |size| size.0);
        Ok(Some(DataNeeds { bytes, storage, region, access, passes, rate_per_gpu, read_size, leaves }))
    }

    /// Reports keys and flags about data that need its size.
    fn data_without_size(&self) -> Result<Option<DataNeeds>, UsageError> {
        let (flags, file) = (self.flags, &self.file().data);
        let flag = first_given(&[
            ("--storage", flags.storage.is_some()),
            ("--data-rate", flags.data_rate.is_some()),
            ("--data-region", flags.data_region.is_some()),
        ]);
        let key = first_given(&[
            ("data.storage", file.storage.is_some()),
            ("data.region", file.region.is_some()),
            ("data.access", file.access.is_some()),
            ("data.passes", file.passes.is_some()),
            ("data.rate", file.rate.is_some()),
            ("data.read_size", file.read_size.is_some()),
            ("data.leaves", file.leaves.is_some()),
        ]);
        let (origin, add) = match (flag, key) {
            (Some(flag), _) => (Origin::Flag(flag), "--data 2TB"),
            (None, Some(key)) => (Origin::Key(key), "`size = \"2TB\"`"),
            (None, None) => return Ok(None),
        };
        Err(self.incomplete(origin, format!("the size of the data is missing: add {add}")))
    }
}
