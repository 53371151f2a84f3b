//! Parses names of GPUs as users, nvidia-smi and pci.ids write them.

/// Words that do not distinguish GPUs.
const FILLER: [&str; 12] = [
    "nvidia",
    "corporation",
    "geforce",
    "tesla",
    "grid",
    "amd",
    "instinct",
    "graphics",
    "gpu",
    "generation",
    "with",
    "design",
];

/// A name, reduced to what distinguishes GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GpuName {
    /// The name without the MIG or vGPU profile.
    pub(super) text: String,
    pub(super) laptop: bool,
    parts: Vec<String>,
    pub(super) is_truncated: bool,
}

impl GpuName {
    /// Parses a name. `NVIDIA A100-SXM4-40GB MIG 1g.5gb` is an A100, `NVIDIA A10-24Q` an A10, and older versions of
    /// nvidia-smi truncate names: `Tesla V100-SXM2...`.
    pub(super) fn parse(name: &str) -> Self {
        let name = name.trim();
        let whole = name.strip_suffix("...").or_else(|| name.strip_suffix('…'));
        let is_truncated = whole.is_some();
        let name = without_profile(without_mig(whole.unwrap_or(name).trim_end()));
        let lower = name.to_lowercase();
        let all: Vec<&str> =
            lower.split(|c: char| !c.is_alphanumeric() && c != '.').filter(|part| !part.is_empty()).collect();
        let mut parts: Vec<String> = Vec::new();
        let mut laptop = false;
        let mut rest = all.as_slice();
        while let Some((word, after)) = rest.split_first() {
            rest = after;
            match (*word, after.first()) {
                ("laptop" | "mobile" | "maxq", _) => laptop = true,
                // Blackwell workstation boards have Max-Q in their name and are not laptop GPUs.
                ("max", Some(&"q")) => {
                    rest = after.get(1..).unwrap_or_default();
                    laptop |= !all.contains(&"workstation");
                    if all.contains(&"workstation") {
                        parts.push("maxq".to_owned());
                    }
                }
                (word, _) if FILLER.contains(&word) => {}
                (word, _) => {
                    // Written as one word: RTX3070Mobile, RTX3070LaptopGPU.
                    let whole = word.strip_suffix("gpu").unwrap_or(word);
                    let stem = ["mobile", "laptop"].iter().find_map(|kind| whole.strip_suffix(kind));
                    laptop |= stem.is_some();
                    parts.push(stem.unwrap_or(word).to_owned());
                }
            }
        }
        Self { text: name.to_owned(), laptop, parts, is_truncated }
    }

    /// Whether this known name is the wanted one, ignoring separators.
    pub(super) fn equals(&self, wanted: &Self) -> bool {
        !wanted.is_truncated && !wanted.parts.is_empty() && self.key() == wanted.key()
    }

    /// The parts as one word, without vendors that are attached to the rest: `GeForceGTX1080`.
    fn key(&self) -> String {
        let key = self.parts.concat();
        let mut rest = key.as_str();
        while let Some(shorter) =
            FILLER.iter().find_map(|filler| rest.strip_prefix(filler)).filter(|rest| !rest.is_empty())
        {
            rest = shorter;
        }
        rest.to_owned()
    }

    /// Whether this known name contains all wanted parts, or starts with a truncated name.
    pub(super) fn contains(&self, wanted: &Self) -> bool {
        if wanted.is_truncated {
            let start = wanted.key();
            return !start.is_empty() && self.key().starts_with(&start);
        }
        wanted.parts.iter().any(|part| is_model(part))
            && wanted.parts.iter().all(|part| self.parts.contains(part))
    }
}

/// Whether a word can name a model by itself, unlike memory and form factor.
fn is_model(word: &str) -> bool {
    let memory = word.strip_suffix("gb").is_some_and(|size| size.bytes().all(|byte| byte.is_ascii_digit()));
    let form = ["pcie", "sxm", "hbm", "nvl"].iter().any(|form| word.starts_with(form));
    !memory && !form && word.bytes().any(|byte| byte.is_ascii_digit() || word.len() > 3)
}

/// `NVIDIA A100-SXM4-40GB` of `NVIDIA A100-SXM4-40GB MIG 1g.5gb`.
fn without_mig(name: &str) -> &str {
    let at = name.to_ascii_lowercase().find(" mig ");
    at.and_then(|at| name.get(..at)).unwrap_or(name).trim_end()
}

/// `NVIDIA A10` of `NVIDIA A10-24Q`, `GRID A100` of `GRID A100-1-5C`: gigabytes and a letter for the product.
fn without_profile(name: &str) -> &str {
    let Some((base, profile)) = name.rsplit_once('-') else { return name };
    let digits = profile.bytes().take_while(u8::is_ascii_digit).count();
    let kind = profile.get(digits..).unwrap_or_default();
    let is_profile = digits > 0 && matches!(kind, "Q" | "C" | "B" | "A" | "QME" | "CME" | "q" | "c");
    if !is_profile {
        return name;
    }
    // A profile of a MIG instance has the number of slices before the gigabytes.
    match base.rsplit_once('-') {
        Some((gpu, slices)) if slices.len() == 1 && slices.bytes().all(|byte| byte.is_ascii_digit()) => gpu,
        _ => base,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_and_mig_devices_are_stripped() {
        for (name, base) in [
            ("NVIDIA A10-24Q", "NVIDIA A10"),
            ("GRID A100-1-5C", "GRID A100"),
            ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA A100-SXM4-40GB"),
            ("Tesla V100-SXM2-16GB", "Tesla V100-SXM2-16GB"),
            ("A100-40", "A100-40"),
        ] {
            assert_eq!(GpuName::parse(name).text, base);
        }
    }

    #[test]
    fn a_laptop_gpu_is_recognized_by_any_of_its_names() {
        for name in
            ["GeForce RTX 3070 Laptop GPU", "GeForce RTX 3070 Mobile", "GeForce RTX 2080 with Max-Q Design"]
        {
            assert!(GpuName::parse(name).laptop, "{name}");
        }
        assert!(!GpuName::parse("RTX PRO 6000 Blackwell Max-Q Workstation Edition").laptop);
    }
}
