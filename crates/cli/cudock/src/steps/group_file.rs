//! Group files.

use std::path::Path;

use cudock_group::Reading;
use cudock_runtime::group;

use crate::failure::Failure;

/// Reads a group file. Prints all errors in it but the last, which is the error of the command.
pub(crate) fn read(file: &Path) -> Result<(String, Reading), Failure> {
    group::flags::read_file(file).map_err(|errors| {
        let mut failures = errors.into_iter().map(Failure::from);
        let mut last = failures.next().unwrap_or_else(|| Failure::input("the group file is invalid"));
        for failure in failures {
            last.print();
            last = failure;
        }
        last
    })
}
