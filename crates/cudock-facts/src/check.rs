//! The rules the tables are held to: each row has a source, order and references hold, nothing stands twice.
//!
//! Tests run them over the embedded tables, and a user's overlay must pass them before it is used.

mod meters;
mod packages;
mod support;

use std::collections::BTreeSet;

use crate::store::Facts;
use crate::tables::{Prices, Row, TableFile, Vendor};
use crate::version::CudaVersion;

/// A rule that a row breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The table.
    pub table: &'static str,
    /// The list in it.
    pub list: &'static str,
    /// The row.
    pub key: String,
    /// What is wrong with it.
    pub message: String,
}

/// Everything that is wrong with the tables.
pub fn all(facts: &Facts) -> Vec<Violation> {
    let mut found = Found::default();
    found.common(facts.gpus());
    found.common(facts.drivers());
    found.common(facts.toolkits());
    found.common(facts.components());
    found.common(facts.forward_compat());
    found.common(facts.images());
    found.common(facts.frameworks());
    found.common(facts.messages());
    found.common(facts.findings());
    found.common(facts.sizes());
    found.common(facts.services());
    found.common(facts.storage());
    found.common(facts.meters());
    found.common(facts.runtimes());
    found.common(facts.packages());
    found.gpus(facts);
    found.chips(facts);
    found.drivers(facts);
    found.toolkits(facts);
    found.compat(facts);
    found.images(facts);
    found.frameworks(facts);
    found.messages(facts);
    found.findings(facts);
    found.azure(facts);
    found.meters(facts);
    found.runtimes(facts);
    found.packages(facts);
    found.violations
}

fn is_pci_id(id: &str) -> bool {
    id.len() == 4 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[derive(Default)]
struct Found {
    violations: Vec<Violation>,
}

impl Found {
    fn add(
        &mut self,
        table: &'static str,
        list: &'static str,
        key: &impl ToString,
        message: impl Into<String>,
    ) {
        self.violations.push(Violation { table, list, key: key.to_string(), message: message.into() });
    }

    /// Holds neighbours to an order.
    fn ascending<T, K: PartialOrd>(
        &mut self,
        (table, list): (&'static str, &'static str),
        rows: &[T],
        key: impl Fn(&T) -> K,
        name: impl Fn(&T) -> String,
    ) {
        for pair in rows.windows(2) {
            if let [before, after] = pair
                && key(before) > key(after)
            {
                self.add(
                    table,
                    list,
                    &name(after),
                    format!("stands behind {}, which is newer", name(before)),
                );
            }
        }
    }

    fn common<T: TableFile>(&mut self, table: &T) {
        let header = table.header();
        let mut seen = BTreeSet::new();
        for (list, row) in table.rows() {
            let key = row.key();
            if row.sources().is_empty() {
                self.add(T::NAME, list, &&key, "has no source");
            }
            for source in row.sources() {
                if !header.sources.contains_key(source) && !source.starts_with("https://") {
                    self.add(
                        T::NAME,
                        list,
                        &&key,
                        format!("names the source `{source}`, which the header does not have"),
                    );
                }
            }
            if !seen.insert((list, key.clone())) {
                self.add(T::NAME, list, &&key, "stands twice");
            }
        }
        for (name, address) in &header.sources {
            if address.trim().is_empty() {
                self.add(T::NAME, "table", &name, "is a source without an address");
            }
        }
    }

    fn gpus(&mut self, facts: &Facts) {
        for gpu in &facts.gpus().gpu {
            let wrong = match (gpu.vendor, gpu.capability) {
                (Vendor::Nvidia, None) => Some("is NVIDIA's and has no compute capability".to_owned()),
                (Vendor::Amd, Some(_)) => Some("is not NVIDIA's and has a compute capability".to_owned()),
                (Vendor::Nvidia, Some(capability))
                    if facts.drivers().architecture_of(capability).is_none() =>
                {
                    Some(format!(
                        "has capability {capability}, which no row of drivers.toml [[architecture]] has"
                    ))
                }
                _ => None,
            };
            if let Some(message) = wrong {
                self.add("gpus", "gpu", &&gpu.id, message);
            }
            for figure in [gpu.fp16_tflops, gpu.memory_gb_per_s].into_iter().flatten() {
                if !figure.is_finite() || figure <= 0.0 {
                    self.add("gpus", "gpu", &&gpu.id, format!("has the throughput {figure}"));
                }
            }
            for id in &gpu.pci_ids {
                if !is_pci_id(id) {
                    self.add(
                        "gpus",
                        "gpu",
                        &&gpu.id,
                        format!("has the PCI id `{id}`; four lower-case hexadecimal digits are meant"),
                    );
                }
            }
        }
    }

    fn chips(&mut self, facts: &Facts) {
        let mut seen = BTreeSet::new();
        for chip in &facts.gpus().chip {
            if facts.drivers().architecture_of(chip.capability).is_none() {
                let message = format!("has capability {}, which drivers.toml does not have", chip.capability);
                self.add("gpus", "chip", &&chip.id, message);
            }
            for (id, _) in chip.devices() {
                if !is_pci_id(id) || !seen.insert(id.to_owned()) {
                    self.add("gpus", "chip", &&chip.id, format!("has a malformed or repeated PCI id `{id}`"));
                }
            }
        }
    }

    fn drivers(&mut self, facts: &Facts) {
        let drivers = facts.drivers();
        let name = |branch: &crate::tables::Branch| format!("R{}", branch.branch);
        self.ascending(("drivers", "branch"), &drivers.branch, |row| row.branch, name);
        self.ascending(("drivers", "branch"), &drivers.branch, |row| row.cuda, name);
        self.ascending(("drivers", "branch"), &drivers.branch, |row| row.ptx_isa, name);
        for branch in &drivers.branch {
            for latest in [branch.latest_linux, branch.latest_windows].into_iter().flatten() {
                if drivers.branch_of(latest).is_none_or(|found| found.branch != branch.branch) {
                    self.add(
                        "drivers",
                        "branch",
                        &name(branch),
                        format!("has the release {latest} of another branch"),
                    );
                }
            }
            if let (Some(first), Some(end)) = (branch.first_release, branch.end_of_life)
                && end <= first
            {
                self.add("drivers", "branch", &name(branch), "ends before it begins");
            }
            if !drivers.architecture.iter().any(|row| row.name == branch.oldest_architecture) {
                let message =
                    format!("drives `{}`, which is no architecture here", branch.oldest_architecture);
                self.add("drivers", "branch", &name(branch), message);
            }
        }
        let mut seen = BTreeSet::new();
        for row in &drivers.architecture {
            for capability in &row.capabilities {
                if !seen.insert(*capability) {
                    self.add(
                        "drivers",
                        "architecture",
                        &&row.name,
                        format!("shares {capability} with another"),
                    );
                }
            }
        }
        self.ascending(
            ("drivers", "minor_compat"),
            &drivers.minor_compat,
            |row| (row.cuda_major, row.min_linux),
            |row| format!("CUDA {}", row.cuda_major),
        );
    }

    fn toolkits(&mut self, facts: &Facts) {
        let toolkits = facts.toolkits();
        let name = |row: &crate::tables::Toolkit| row.cuda.to_string();
        self.ascending(("toolkits", "toolkit"), &toolkits.toolkit, |row| row.cuda, name);
        self.ascending(("toolkits", "toolkit"), &toolkits.toolkit, |row| row.ptx_isa, name);
        self.ascending(
            ("toolkits", "release"),
            &toolkits.release,
            |row| row.cuda,
            |row| row.cuda.to_string(),
        );
        self.ascending(
            ("components", "components"),
            &facts.components().components,
            |row| row.cuda,
            |row| row.cuda.to_string(),
        );
        for toolkit in &toolkits.toolkit {
            let Some(number) = toolkit.driver_branch else { continue };
            match facts.drivers().branch.iter().find(|branch| branch.branch == number) {
                None => self.add(
                    "toolkits",
                    "toolkit",
                    &name(toolkit),
                    format!("goes with R{number}, which is no branch"),
                ),
                Some(branch) if branch.cuda != toolkit.cuda || branch.ptx_isa != toolkit.ptx_isa => {
                    let message = format!(
                        "goes with R{number}, which has CUDA {} and PTX {}",
                        branch.cuda, branch.ptx_isa
                    );
                    self.add("toolkits", "toolkit", &name(toolkit), message);
                }
                Some(_) => {}
            }
            if toolkit.default_arch.is_some_and(|arch| !toolkit.sass.contains(&arch)) {
                self.add(
                    "toolkits",
                    "toolkit",
                    &name(toolkit),
                    "has a default target it cannot assemble for",
                );
            }
        }
        for row in &facts.components().components {
            if !toolkits.release.iter().any(|release| release.cuda == row.cuda) {
                self.add("components", "components", &row.cuda, "is no release of toolkits.toml");
            }
        }
    }

    fn compat(&mut self, facts: &Facts) {
        for package in &facts.forward_compat().package {
            for branch in &package.supported {
                let known = facts.drivers().branch.iter().find(|row| row.branch == *branch);
                if known.is_none_or(|row| row.cuda >= package.cuda) {
                    let message =
                        format!("is said to run on R{branch}, which is unknown or has that CUDA by itself");
                    self.add("forward_compat", "package", &package.cuda, message);
                }
            }
        }
    }

    fn images(&mut self, facts: &Facts) {
        let images = facts.images();
        self.ascending(("images", "tag"), &images.tag, |row| row.cuda, |row| row.cuda.to_string());
        for tags in &images.tag {
            if tags.grid.is_empty()
                || tags.grid.iter().any(|grid| grid.flavours.is_empty() || grid.os.is_empty())
            {
                self.add("images", "tag", &tags.cuda, "has an empty grid");
            }
            if images.deleted.iter().any(|row| row.cuda == tags.cuda.to_string()) {
                self.add("images", "tag", &tags.cuda, "exists and is deleted");
            }
        }
        for row in &images.require {
            if row.minimum != row.cuda.version() {
                self.add("images", "require", &row.cuda, format!("demands CUDA {}", row.minimum));
            }
        }
        for pair in images.library_path.windows(2) {
            if let [before, after] = pair
                && before.to.is_none_or(|to| to >= after.from)
            {
                self.add("images", "library_path", &after.from, "overlaps the range before it");
            }
        }
    }

    fn frameworks(&mut self, facts: &Facts) {
        let frameworks = facts.frameworks();
        let list = |list| ("frameworks", list);
        self.ascending(
            list("torch"),
            &frameworks.torch,
            |row| row.version.clone(),
            |row| row.version.to_string(),
        );
        self.ascending(
            list("tensorflow"),
            &frameworks.tensorflow,
            |row| row.version.clone(),
            |row| row.version.to_string(),
        );
        self.ascending(
            list("onnxruntime_gpu"),
            &frameworks.onnxruntime_gpu,
            |row| row.version.clone(),
            |row| row.version.to_string(),
        );
        self.ascending(
            list("tensorrt"),
            &frameworks.tensorrt,
            |row| row.version.clone(),
            |row| row.version.to_string(),
        );
        for build in &frameworks.torch_build {
            let key = crate::tables::Row::key(build);
            if CudaVersion::from_tag(&build.tag) != Some(build.cuda) {
                self.add("frameworks", "torch_build", &&key, format!("has CUDA {}", build.cuda));
            }
            for version in &build.versions {
                if frameworks.torch(version).is_none() {
                    self.add(
                        "frameworks",
                        "torch_build",
                        &&key,
                        format!("is of torch {version}, which has no row"),
                    );
                }
            }
        }
        for release in &frameworks.torch {
            let on_pypi: Vec<_> =
                frameworks.torch_builds(&release.version).filter(|build| build.pypi).collect();
            match on_pypi.as_slice() {
                [build] if build.tag == release.tag && build.cuda == release.cuda => {}
                _ => self.add(
                    "frameworks",
                    "torch",
                    &&release.version,
                    "does not have one PyPI build of its tag and CUDA",
                ),
            }
            if let Some(minor) = facts.drivers().minor_compat(release.cuda.major())
                && release.min_driver != minor.min_linux
            {
                let message = format!(
                    "asks for driver {}; CUDA {} asks for {}",
                    release.min_driver,
                    release.cuda.major(),
                    minor.min_linux
                );
                self.add("frameworks", "torch", &&release.version, message);
            }
        }
    }

    fn runtimes(&mut self, facts: &Facts) {
        let runtimes = facts.runtimes();
        for wheel in &runtimes.wheel {
            let mut wrong = |message: String| self.add("runtimes", "wheel", &Row::key(wheel), message);
            if wheel.sha256.len() != 64
                || !wheel.sha256.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            {
                wrong("has a hash that is not 64 lower-case hexadecimal digits".to_owned());
            }
            if !wheel.members.iter().any(|member| member.path == wheel.library) {
                wrong(format!("does not take its library `{}` out", wheel.library));
            }
            let mut names = BTreeSet::new();
            for member in &wheel.members {
                if member.path.split('/').any(|part| matches!(part, "" | "." | ".."))
                    || !names.insert(member.name())
                {
                    wrong(format!("takes out `{}`, which has no name of its own", member.path));
                }
            }
            let of_cuda = wheel.needs.iter().chain(&wheel.loads).filter(|soname| *soname != "libcuda.so.1");
            for soname in of_cuda.filter(|soname| runtimes.requirement_for(soname).is_none()) {
                wrong(format!("uses {soname}, which has no row in [[cuda_library]]"));
            }
        }
    }

    fn messages(&mut self, facts: &Facts) {
        let messages = facts.messages();
        for message in &messages.message {
            for general in &message.wins_over {
                if messages.get(general).is_none() || *general == message.id {
                    self.add(
                        "messages",
                        "message",
                        &&message.id,
                        format!("wins over `{general}`, which is no other message"),
                    );
                }
            }
            if let Some(code) = message.cuda_code
                && messages.cuda_error(&code.to_string()).is_none()
            {
                self.add(
                    "messages",
                    "message",
                    &&message.id,
                    format!("has the CUDA error {code}, which has no row"),
                );
            }
            if message.fix.is_empty() {
                self.add("messages", "message", &&message.id, "has no fix");
            }
        }
        self.ascending(
            ("messages", "cuda_error"),
            &messages.cuda_error,
            |row| row.code,
            |row| row.code.to_string(),
        );
    }

    fn findings(&mut self, facts: &Facts) {
        let pages = &facts.findings().finding;
        self.ascending(("findings", "finding"), pages, |row| row.code.clone(), |row| row.code.clone());
        for page in pages {
            if page.group().is_none() {
                self.add("findings", "finding", &&page.code, "is not `CD` and four digits of a known group");
            }
            if page.fix.is_empty() {
                self.add("findings", "finding", &&page.code, "has no fix");
            }
        }
    }

    fn azure(&mut self, facts: &Facts) {
        let is_gpu = |id: &str| facts.gpus().gpu.iter().any(|gpu| gpu.id == id);
        for size in &facts.sizes().size {
            if let Some(gpu) = size.gpu.as_deref().filter(|gpu| !is_gpu(gpu)) {
                self.add(
                    "azure_sizes",
                    "size",
                    &&size.name,
                    format!("has the GPU `{gpu}`, which gpus.toml does not have"),
                );
            }
            if size.documented && (size.gpu.is_none() || size.gpu_count.is_none()) {
                self.add("azure_sizes", "size", &&size.name, "is documented and has no GPU");
            }
            if !matches!(size.cpu_arch.as_str(), "x86_64" | "aarch64") {
                self.add(
                    "azure_sizes",
                    "size",
                    &&size.name,
                    format!("has the CPU architecture `{}`", size.cpu_arch),
                );
            }
        }
        let mut seen = BTreeSet::new();
        for row in facts.prices().rows() {
            if facts.sizes().find(row.size).one().is_none() {
                self.add(Prices::NAME, "price", &row.size, "is priced and is no size of azure_sizes.toml");
            }
            if row.price.is_none() && row.spot.is_none() {
                self.add(Prices::NAME, "price", &row.size, format!("has no price in {}", row.region));
            }
            if !seen.insert((row.size.to_owned(), row.region.to_owned())) {
                self.add(Prices::NAME, "price", &row.size, format!("stands twice for {}", row.region));
            }
        }
        let services = facts.services();
        let is_service = |id: &str| services.service.iter().any(|service| service.id == id);
        for profile in &services.profile {
            if !is_gpu(&profile.gpu) {
                self.add(
                    "azure_services",
                    "profile",
                    &&profile.name,
                    format!("has the GPU `{}`", profile.gpu),
                );
            }
        }
        for limit in services.limit.iter().filter(|limit| !is_service(&limit.service)) {
            let key = crate::tables::Row::key(limit);
            self.add(
                "azure_services",
                "limit",
                &key,
                format!("limits `{}`, which is no service", limit.service),
            );
        }
        self.support(facts);
        let storage = facts.storage();
        let is_storage = |id: &str| storage.storage.iter().any(|row| row.id == id);
        for price in storage.price.iter().filter(|price| !is_storage(&price.storage)) {
            let key = crate::tables::Row::key(price);
            self.add(
                "azure_storage",
                "price",
                &key,
                format!("prices `{}`, which is no storage", price.storage),
            );
        }
    }
}
