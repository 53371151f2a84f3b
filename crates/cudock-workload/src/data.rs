//! The data that a workload reads.

use cudock_base::UsageError;
use cudock_plan::{Access, DataNeeds};
use cudock_project::{ByteSize, DataAccess};

use crate::assumptions::assumptions;
use crate::builder::{Origin, WorkloadBuilder, flag_or_key};

impl WorkloadBuilder<'_> {
    pub(crate) fn data(&mut self) -> Result<Option<DataNeeds>, UsageError> {
        let (flags, file) = (self.flags, &self.file().data);
        let Some((ByteSize(bytes), given)) = flag_or_key(flags.data, "--data", file.size, "data.size") else {
            return self.data_without_size();
        };
        if bytes == 0 {
            return Err(self.invalid(given, "must be larger than zero; omit it without data", None));
        }
        let storage = if let Some((name, given)) =
            flag_or_key(flags.storage.as_deref(), "--storage", file.storage.as_deref(), "data.storage")
        {
            self.storage(name, given)?
        } else {
            self.default(&assumptions().storage)
        };
        let region =
            flag_or_key(flags.data_region.clone(), "--data-region", file.region.clone(), "data.region");
        let region = match region {
            Some((name, given)) => self.regions(&[name], given)?.pop(),
            None => None,
        };
        let rate = flag_or_key(
            flags.data_rate.map(|size| size.0),
            "--data-rate",
            file.rate.map(|rate| rate.0),
            "data.rate",
        );
        if let Some((0, given)) = rate {
            return Err(self.invalid(given, "must be larger than zero", None));
        }
        let passes = file.passes.unwrap_or(1);
        let access = match file.access.unwrap_or_else(|| self.default(&assumptions().access)) {
            DataAccess::Stream => Access::Stream { passes },
            DataAccess::Stage => Access::Stage,
            DataAccess::Either => Access::Either { passes },
        };
        let ByteSize(read_size) = file.read_size.unwrap_or_else(|| self.default(&assumptions().read_size));
        let rate_per_gpu = match rate {
            Some((rate, _)) => Some(rate),
            None => self.default(&assumptions().data_rate),
        };
        let leaves = file.leaves.map_or(0, |size| size.0);
        Ok(Some(DataNeeds { bytes, storage, region, access, rate_per_gpu, read_size, leaves }))
    }

    /// Reports keys and flags about data that need its size.
    fn data_without_size(&self) -> Result<Option<DataNeeds>, UsageError> {
        let flags = [
            ("--storage", self.flags.storage.is_some()),
            ("--data-rate", self.flags.data_rate.is_some()),
            ("--data-region", self.flags.data_region.is_some()),
        ];
        if let Some((flag, _)) = flags.into_iter().find(|(_, given)| *given) {
            return Err(
                self.incomplete(Origin::Flag(flag), "the size of the data is missing: add --data 2TB")
            );
        }
        let file = &self.file().data;
        let keys = [
            ("data.storage", file.storage.is_some()),
            ("data.region", file.region.is_some()),
            ("data.access", file.access.is_some()),
            ("data.passes", file.passes.is_some()),
            ("data.rate", file.rate.is_some()),
            ("data.read_size", file.read_size.is_some()),
            ("data.leaves", file.leaves.is_some()),
        ];
        match keys.into_iter().find(|(_, given)| *given) {
            Some((key, _)) => {
                Err(self
                    .incomplete(Origin::Key(key), "the size of the data is missing: add `size = \"2TB\"`"))
            }
            None => Ok(None),
        }
    }
}
