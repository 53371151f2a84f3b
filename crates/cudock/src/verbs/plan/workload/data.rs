//! What is read.

use cudock_plan::{Access, Data};
use cudock_project::{ByteSize, DataAccess};

use super::asking::{Asking, Given, either};
use crate::failure::Failure;

/// What is read at a time if nothing is said: the block that tools for Blob storage read by.
const READ_SIZE: u64 = 4 << 20;

/// Where data lies if nothing is said.
const STORAGE: &str = "blob-hot";

impl Asking<'_> {
    pub(super) fn data(&mut self) -> Result<Option<Data>, Failure> {
        let (flags, file) = (self.flags, &self.file().data);
        let Some((ByteSize(bytes), given)) = either(flags.data, "--data", file.size, "data.size") else {
            return self.data_without_size();
        };
        if bytes == 0 {
            return Err(self.wrong(given, "that is nothing; leave it out if it reads nothing", None));
        }
        let storage = if let Some((name, given)) =
            either(flags.storage.as_deref(), "--storage", file.storage.as_deref(), "data.storage")
        {
            self.storage(name, given)?
        } else {
            self.assume("data.storage", STORAGE, "assumed; `cudock facts` lists the kinds");
            STORAGE.to_owned()
        };
        let region = either(flags.data_region.clone(), "--data-region", file.region.clone(), "data.region");
        let region = match region {
            Some((name, given)) => self.regions(&[name], given)?.pop(),
            None => None,
        };
        let rate = either(
            flags.data_rate.map(|size| size.0),
            "--data-rate",
            file.rate.map(|rate| rate.0),
            "data.rate",
        );
        if let Some((0, given)) = rate {
            return Err(self.wrong(given, "a GPU that uses up nothing reads nothing", None));
        }
        let passes = file.passes.unwrap_or(1);
        let access = match file.access {
            Some(DataAccess::Stream) => Access::Stream { passes },
            Some(DataAccess::Stage) => Access::Stage,
            Some(DataAccess::Either) => Access::Either { passes },
            None => {
                let source = "assumed; `access` in [data] says stream, stage or either";
                self.assume(
                    "data.access",
                    "read from where it lies or copied first, whichever is cheaper",
                    source,
                );
                Access::Either { passes }
            }
        };
        let read_size = if let Some(ByteSize(bytes)) = file.read_size {
            bytes
        } else {
            self.assume("data.read_size", "4 MiB", "assumed; storage charges by read operations");
            READ_SIZE
        };
        let rate_per_gpu = rate.map(|(rate, _)| rate);
        if rate_per_gpu.is_none() {
            let source = "assumed; `rate` in [data] or --data-rate says what a GPU uses up";
            self.assume("data.rate", "the data keeps the GPU busy", source);
        }
        let leaves = file.leaves.map_or(0, |size| size.0);
        Ok(Some(Data { bytes, storage, region, access, rate_per_gpu, read_size, leaves }))
    }

    /// Keys and flags about data that say nothing without its size.
    fn data_without_size(&self) -> Result<Option<Data>, Failure> {
        let flags = [
            ("--storage", self.flags.storage.is_some()),
            ("--data-rate", self.flags.data_rate.is_some()),
            ("--data-region", self.flags.data_region.is_some()),
        ];
        if let Some((flag, _)) = flags.into_iter().find(|(_, given)| *given) {
            return Err(self.lacks(Given::Flag(flag), "how much is read is not said: --data 2TB"));
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
                Err(self.lacks(Given::Key(key), "how much is read is not said: add `size = \"2TB\"`"))
            }
            None => Ok(None),
        }
    }
}
