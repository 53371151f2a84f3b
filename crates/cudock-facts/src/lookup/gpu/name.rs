//! Names of GPUs as people, nvidia-smi and pci.ids write them.

/// Words that do not tell GPUs apart.
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

/// A name, reduced to what tells GPUs apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GpuName {
    /// The name without the MIG or vGPU profile.
    pub(super) text: String,
    /// Whether it names a laptop GPU.
    pub(super) laptop: bool,
    words: Vec<String>,
    cut: bool,
}

impl GpuName {
    /// Reads a name. `NVIDIA A100-SXM4-40GB MIG 1g.5gb` is an A100, `NVIDIA A10-24Q` an A10, and `Tesla V100-SXM2...` is
    /// what older versions of nvidia-smi have room for.
    pub(super) fn parse(name: &str) -> Self {
        let name = name.trim();
        let whole = name.strip_suffix("...").or_else(|| name.strip_suffix('…'));
        let cut = whole.is_some();
        let name = without_profile(without_mig(whole.unwrap_or(name).trim_end()));
        let lower = name.to_lowercase();
        let all: Vec<&str> =
            lower.split(|c: char| !c.is_alphanumeric() && c != '.').filter(|word| !word.is_empty()).collect();
        let mut words: Vec<String> = Vec::new();
        let mut laptop = false;
        let mut rest = all.as_slice();
        while let Some((word, after)) = rest.split_first() {
            rest = after;
            match (*word, after.first()) {
                ("laptop" | "mobile" | "maxq", _) => laptop = true,
                // Blackwell workstation boards have Max-Q in their name and are no laptop GPUs; words around it tell.
                ("max", Some(&"q")) => {
                    rest = after.get(1..).unwrap_or_default();
                    laptop |= !all.contains(&"workstation");
                    if all.contains(&"workstation") {
                        words.push("maxq".to_owned());
                    }
                }
                (word, _) if FILLER.contains(&word) => {}
                (word, _) => {
                    // Written as one word: RTX3070Mobile, RTX3070LaptopGPU.
                    let whole = word.strip_suffix("gpu").unwrap_or(word);
                    let stem = ["mobile", "laptop"].iter().find_map(|kind| whole.strip_suffix(kind));
                    laptop |= stem.is_some();
                    words.push(stem.unwrap_or(word).to_owned());
                }
            }
        }
        Self { text: name.to_owned(), laptop, words, cut }
    }

    /// Whether nvidia-smi had no room for all of it.
    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }

    /// Whether this known name is the wanted one, whatever stands between its words.
    pub(super) fn equals(&self, wanted: &Self) -> bool {
        !wanted.cut && !wanted.words.is_empty() && self.key() == wanted.key()
    }

    /// The words as one, without makers that were written together with the rest: `GeForceGTX1080`.
    fn key(&self) -> String {
        let key = self.words.concat();
        let mut rest = key.as_str();
        while let Some(shorter) =
            FILLER.iter().find_map(|filler| rest.strip_prefix(filler)).filter(|rest| !rest.is_empty())
        {
            rest = shorter;
        }
        rest.to_owned()
    }

    /// Whether this known name holds all that is wanted: each word, or for a name that was cut off, its beginning.
    pub(super) fn contains(&self, wanted: &Self) -> bool {
        if wanted.cut {
            let start = wanted.key();
            return !start.is_empty() && self.key().starts_with(&start);
        }
        wanted.words.iter().any(|word| is_model(word))
            && wanted.words.iter().all(|word| self.words.contains(word))
    }
}

/// Whether a word can name a model by itself: memory and form factor cannot.
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

/// `NVIDIA A10` of `NVIDIA A10-24Q`, `GRID A100` of `GRID A100-1-5C`: gigabytes and a letter for what it is sold for.
fn without_profile(name: &str) -> &str {
    let Some((base, profile)) = name.rsplit_once('-') else { return name };
    let digits = profile.bytes().take_while(u8::is_ascii_digit).count();
    let kind = profile.get(digits..).unwrap_or_default();
    let is_profile = digits > 0 && matches!(kind, "Q" | "C" | "B" | "A" | "QME" | "CME" | "q" | "c");
    if !is_profile {
        return name;
    }
    // A profile on a MIG instance has the number of its slices before the gigabytes.
    match base.rsplit_once('-') {
        Some((gpu, slices)) if slices.len() == 1 && slices.bytes().all(|byte| byte.is_ascii_digit()) => gpu,
        _ => base,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_and_mig_devices_are_taken_off() {
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
    fn a_laptop_gpu_is_told_by_any_of_its_words() {
        for name in
            ["GeForce RTX 3070 Laptop GPU", "GeForce RTX 3070 Mobile", "GeForce RTX 2080 with Max-Q Design"]
        {
            assert!(GpuName::parse(name).laptop, "{name}");
        }
        assert!(!GpuName::parse("RTX PRO 6000 Blackwell Max-Q Workstation Edition").laptop);
    }
}
