//! Checks the tables: each row has a source and a unique key, and order and references are valid.
//!
//! Tests check the embedded tables, and an overlay is checked before it is used.

mod azure;
mod meters;
mod packages;
pub(crate) mod violation;

use std::collections::BTreeSet;

pub use violation::Violation;

use crate::store::Facts;
use crate::tables::{TableFile, TableRow, Vendor, for_each_table};
use crate::version::CudaVersion;

/// Checks all tables.
pub fn all(facts: &Facts) -> Vec<Violation> {
    let mut checker = TableChecker::default();
    checker.sources_and_keys(facts);
    checker.gpus(facts);
    checker.drivers(facts);
    checker.toolkits(facts);
    checker.images(facts);
    checker.frameworks(facts);
    checker.messages(facts);
    checker.findings(facts);
    checker.azure(facts);
    checker.meters(facts);
    checker.runtimes(facts);
    checker.packages(facts);
    checker.violations
}

macro_rules! define_common_checks {
    ($($name:ident: $type:ident = $file:literal, $doc:literal $(=> $finish:ident)?;)*) => {
        impl TableChecker {
            /// Checks what holds for all tables: rows have known sources and unique keys.
            fn sources_and_keys(&mut self, facts: &Facts) {
                $(self.common(facts.$name());)*
            }
        }
    };
}

for_each_table!(define_common_checks);

#[derive(Default)]
struct TableChecker {
    violations: Vec<Violation>,
}

/// A row that is checked.
struct RowCheck<'a> {
    violations: &'a mut Vec<Violation>,
    table: &'static str,
    list: &'static str,
    row: &'a dyn TableRow,
}

impl RowCheck<'_> {
    /// Adds a violation unless a condition holds.
    fn require<M: Into<String>>(&mut self, holds: bool, message: impl FnOnce() -> M) {
        if !holds {
            let (table, list, key) = (self.table, self.list, self.row.key());
            self.violations.push(Violation { table, list, key, message: message().into() });
        }
    }
}

impl TableChecker {
    /// Checks each row of a list.
    fn each<'a, T: TableRow>(
        &mut self,
        table: &'static str,
        list: &'static str,
        rows: &'a [T],
        mut check: impl FnMut(&'a T, &mut RowCheck<'_>),
    ) {
        for row in rows {
            check(row, &mut RowCheck { violations: &mut self.violations, table, list, row });
        }
    }

    /// Checks each row of a list and the one before it.
    fn pairs<T: TableRow>(
        &mut self,
        table: &'static str,
        list: &'static str,
        rows: &[T],
        check: impl Fn(&T, &T, &mut RowCheck<'_>),
    ) {
        for (before, row) in rows.iter().zip(rows.iter().skip(1)) {
            check(before, row, &mut RowCheck { violations: &mut self.violations, table, list, row });
        }
    }

    /// Checks that rows are sorted by a column.
    fn sorted<T: TableRow, K: PartialOrd>(
        &mut self,
        table: &'static str,
        list: &'static str,
        rows: &[T],
        column: impl Fn(&T) -> K,
    ) {
        self.pairs(table, list, rows, |before, row, check| {
            let message = || format!("comes after {}, which is newer", before.key());
            check.require(column(before) <= column(row), message);
        });
    }

    fn common<T: TableFile>(&mut self, table: &T) {
        let header = table.header();
        let mut seen = BTreeSet::new();
        for (list, row) in table.rows() {
            let mut check = RowCheck { violations: &mut self.violations, table: T::NAME, list, row };
            check.require(!row.sources().is_empty(), || "has no source");
            for source in row.sources() {
                let known = header.sources.contains_key(source) || source.starts_with("https://");
                check.require(known, || format!("has the source `{source}`, which is not in the header"));
            }
            check.require(seen.insert((list, row.key())), || "is duplicated");
        }
        for (name, _) in header.sources.iter().filter(|(_, url)| url.trim().is_empty()) {
            let (key, message) = (name.clone(), "is a source without a URL".to_owned());
            self.violations.push(Violation { table: T::NAME, list: "table", key, message });
        }
    }

    fn gpus(&mut self, facts: &Facts) {
        let is_known = |capability| facts.drivers().architecture_of(capability).is_some();
        self.each("gpus", "gpu", &facts.gpus().gpu, |gpu, check| {
            match (gpu.vendor, gpu.capability) {
                (Vendor::Nvidia, None) => {
                    check.require(false, || "is from NVIDIA and has no compute capability");
                }
                (Vendor::Amd, Some(_)) => {
                    check.require(false, || "is not from NVIDIA and has a compute capability");
                }
                (Vendor::Nvidia, Some(capability)) => check.require(is_known(capability), || {
                    format!("has capability {capability}, which is not in drivers.toml [[architecture]]")
                }),
                (Vendor::Amd, None) => {}
            }
            for figure in [gpu.fp16_tflops, gpu.memory_gb_per_s].into_iter().flatten() {
                let valid = figure.is_finite() && figure > 0.0;
                check.require(valid, || format!("has the throughput {figure}"));
            }
            for id in &gpu.pci_ids {
                let message =
                    || format!("has the PCI id `{id}`, expected four lower-case hexadecimal digits");
                check.require(is_lower_hex(id, 4), message);
            }
        });
        self.each("gpus", "arithmetic", &facts.gpus().arithmetic, |row, check| {
            let message = || format!("has capability {}, which is not in drivers.toml", row.capability);
            check.require(is_known(row.capability), message);
            check.require(!row.native.is_empty(), || "calculates in nothing");
        });
        let mut seen = BTreeSet::new();
        self.each("gpus", "chip", &facts.gpus().chip, |chip, check| {
            let message = || format!("has capability {}, which is not in drivers.toml", chip.capability);
            check.require(is_known(chip.capability), message);
            for (id, _) in chip.devices() {
                let valid = is_lower_hex(id, 4) && seen.insert(id);
                check.require(valid, || format!("has a malformed or repeated PCI id `{id}`"));
            }
        });
    }

    fn drivers(&mut self, facts: &Facts) {
        let drivers = facts.drivers();
        self.sorted("drivers", "branch", &drivers.branch, |row| row.branch);
        self.sorted("drivers", "branch", &drivers.branch, |row| row.cuda);
        self.sorted("drivers", "branch", &drivers.branch, |row| row.ptx_isa);
        self.each("drivers", "branch", &drivers.branch, |branch, check| {
            for latest in [branch.latest_linux, branch.latest_windows].into_iter().flatten() {
                let own = drivers.branch_of(latest).is_some_and(|known| known.branch == branch.branch);
                check.require(own, || format!("has the release {latest} of another branch"));
            }
            let ends = branch.first_release.zip(branch.end_of_life);
            check.require(ends.is_none_or(|(first, end)| end > first), || "ends before it begins");
            let oldest = &branch.oldest_architecture;
            check.require(drivers.architecture.iter().any(|row| row.name == *oldest), || {
                format!("drives `{oldest}`, which is not an architecture of drivers.toml")
            });
        });
        let mut seen = BTreeSet::new();
        self.each("drivers", "architecture", &drivers.architecture, |row, check| {
            for capability in &row.capabilities {
                check.require(seen.insert(*capability), || format!("shares {capability} with another"));
            }
        });
        self.sorted("drivers", "minor_compat", &drivers.minor_compat, |row| (row.cuda_major, row.min_linux));
    }

    fn toolkits(&mut self, facts: &Facts) {
        let (toolkits, branches) = (facts.toolkits(), &facts.drivers().branch);
        self.sorted("toolkits", "toolkit", &toolkits.toolkit, |row| row.cuda);
        self.sorted("toolkits", "toolkit", &toolkits.toolkit, |row| row.ptx_isa);
        self.sorted("toolkits", "release", &toolkits.release, |row| row.cuda);
        self.sorted("components", "components", &facts.components().components, |row| row.cuda);
        self.each("toolkits", "toolkit", &toolkits.toolkit, |toolkit, check| {
            let Some(number) = toolkit.driver_branch else { return };
            match branches.iter().find(|branch| branch.branch == number) {
                None => check
                    .require(false, || format!("goes with R{number}, which is not a branch of drivers.toml")),
                Some(branch) => {
                    let same = (branch.cuda, branch.ptx_isa) == (toolkit.cuda, toolkit.ptx_isa);
                    check.require(same, || {
                        let (cuda, ptx) = (branch.cuda, branch.ptx_isa);
                        format!("goes with R{number}, which has CUDA {cuda} and PTX {ptx}")
                    });
                }
            }
            let listed = toolkit.default_arch.is_none_or(|arch| toolkit.sass.contains(&arch));
            check.require(listed, || "has a default target that is not in its list");
        });
        self.each("components", "components", &facts.components().components, |row, check| {
            let known = toolkits.release.iter().any(|release| release.cuda == row.cuda);
            check.require(known, || "is not a release of toolkits.toml");
        });
        self.each("forward_compat", "package", &facts.forward_compat().package, |package, check| {
            for number in &package.supported {
                let branch = branches.iter().find(|row| row.branch == *number);
                check.require(branch.is_some_and(|row| row.cuda < package.cuda), || {
                    format!("supports R{number}, which is unknown or has that CUDA version itself")
                });
            }
        });
    }

    fn images(&mut self, facts: &Facts) {
        let images = facts.images();
        self.sorted("images", "tag", &images.tag, |row| row.cuda);
        self.sorted("images", "flavor_size", &images.flavor_size, |row| row.cuda);
        self.each("images", "tag", &images.tag, |tags, check| {
            let filled = tags.grid.iter().all(|grid| !grid.flavors.is_empty() && !grid.os.is_empty());
            check.require(filled && !tags.grid.is_empty(), || "has an empty grid");
            let deleted = images.deleted.iter().any(|row| row.cuda == tags.cuda.to_string());
            check.require(!deleted, || "is listed as existing and as deleted");
        });
        self.each("images", "require", &images.require, |row, check| {
            check.require(row.minimum == row.cuda.version(), || format!("requires CUDA {}", row.minimum));
        });
        self.pairs("images", "library_path", &images.library_path, |before, row, check| {
            check.require(before.to.is_some_and(|to| to < row.from), || "overlaps the previous range");
        });
    }

    fn frameworks(&mut self, facts: &Facts) {
        let frameworks = facts.frameworks();
        self.sorted("frameworks", "torch", &frameworks.torch, |row| row.version.clone());
        self.sorted("frameworks", "tensorflow", &frameworks.tensorflow, |row| row.version.clone());
        self.sorted("frameworks", "onnxruntime_gpu", &frameworks.onnxruntime_gpu, |row| row.version.clone());
        self.sorted("frameworks", "tensorrt", &frameworks.tensorrt, |row| row.version.clone());
        self.each("frameworks", "torch_build", &frameworks.torch_build, |build, check| {
            let tagged = CudaVersion::from_tag(&build.tag) == Some(build.cuda);
            check.require(tagged, || format!("has CUDA {}", build.cuda));
            for version in &build.versions {
                let message = || format!("is for torch {version}, which has no row");
                check.require(frameworks.torch(version).is_some(), message);
            }
        });
        self.each("frameworks", "torch", &frameworks.torch, |release, check| {
            let on_pypi = frameworks.torch_builds(&release.version).filter(|build| build.pypi);
            let one = matches!(on_pypi.collect::<Vec<_>>().as_slice(),
                [build] if build.tag == release.tag && build.cuda == release.cuda);
            check.require(one, || "does not have one PyPI build of its tag and CUDA");
            let major = release.cuda.major();
            if let Some(minor) = facts.drivers().minor_compat(major) {
                let (has, needs) = (release.min_driver, minor.min_linux);
                let message = || format!("requires driver {has}; CUDA {major} requires {needs}");
                check.require(has == needs, message);
            }
        });
    }

    fn runtimes(&mut self, facts: &Facts) {
        let runtimes = facts.runtimes();
        self.each("runtimes", "wheel", &runtimes.wheel, |wheel, check| {
            let message = || "has a hash that is not 64 lower-case hexadecimal digits";
            check.require(is_lower_hex(&wheel.sha256, 64), message);
            let extracted = wheel.members.iter().any(|member| member.path == wheel.library);
            check.require(extracted, || format!("does not extract its library `{}`", wheel.library));
            let mut names = BTreeSet::new();
            for member in &wheel.members {
                let confined = !member.path.split('/').any(|part| matches!(part, "" | "." | ".."));
                check.require(confined && names.insert(member.name()), || {
                    format!("extracts `{}`, whose name is invalid or duplicated", member.path)
                });
            }
            let of_cuda = wheel.needs.iter().chain(&wheel.loads).filter(|soname| *soname != "libcuda.so.1");
            for soname in of_cuda {
                let message = || format!("uses {soname}, which has no row in [[cuda_library]]");
                check.require(runtimes.requirement_for(soname).is_some(), message);
            }
        });
    }

    fn messages(&mut self, facts: &Facts) {
        let messages = facts.messages();
        self.each("messages", "message", &messages.message, |row, check| {
            for general in &row.wins_over {
                let message = || format!("wins over `{general}`, which is not another message");
                check.require(messages.get(general).is_some() && *general != row.id, message);
            }
            if let Some(code) = row.cuda_code {
                let message = || format!("has the CUDA error {code}, which has no row");
                check.require(messages.cuda_error(&code.to_string()).is_some(), message);
            }
            check.require(!row.fix.is_empty(), || "has no fix");
        });
        self.sorted("messages", "cuda_error", &messages.cuda_error, |row| row.code);
    }

    fn findings(&mut self, facts: &Facts) {
        let pages = &facts.findings().finding;
        self.sorted("findings", "finding", pages, |row| row.code.clone());
        self.each("findings", "finding", pages, |page, check| {
            check.require(page.has_valid_code(), || "is not `CD` and four digits of a known group");
            check.require(!page.fix.is_empty(), || "has no fix");
        });
    }
}

fn is_lower_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a service has a row; `ml-endpoint` is a part of `ml`.
fn is_service(facts: &Facts, id: &str) -> bool {
    let part_of = |whole: &str| id.strip_prefix(whole).is_some_and(|part| part.starts_with('-'));
    facts.services().service.iter().any(|service| service.id == id || part_of(&service.id))
}

fn is_storage(facts: &Facts, id: &str) -> bool {
    facts.storage().storage.iter().any(|row| row.id == id)
}

fn is_gpu(facts: &Facts, id: &str) -> bool {
    facts.gpus().gpu.iter().any(|gpu| gpu.id == id)
}
