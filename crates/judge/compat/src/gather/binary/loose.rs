//! GPU code that is data of a program's own: bare cubins and PTX as text, which it hands to the driver itself.

use cudock_facts::version::{PtxArch, PtxIsa};
use cudock_fatbin::Cubin;
use memchr::memmem;

use crate::evidence::Pattern;

/// The entry point of cudock's own GPU test. An image that contains cudock, which also serves its model or starts it, does not run on
/// a GPU because of that.
const OWN_KERNEL: &str = ".entry cudock_multiply_add(";

const SECTIONS: [&str; 3] = [".rodata", ".data", ".data.rel.ro"];
/// Pieces that are looked at in one program.
const MAX_PIECES: usize = 256;

/// The loose code in a program.
#[derive(Debug, Default)]
pub(crate) struct LooseCode {
    /// Each piece is a module.
    pub(crate) patterns: Vec<Pattern>,
    /// Whether cudock's own GPU test is in it.
    pub(crate) has_own_kernel: bool,
}

pub(crate) fn find(bytes: &[u8]) -> LooseCode {
    let mut found = LooseCode::default();
    for section in SECTIONS.iter().filter_map(|name| cudock_fatbin::section(bytes, name)) {
        for at in memmem::find_iter(section, b"\x7fELF").take(MAX_PIECES) {
            let cubin = section.get(at..).and_then(Cubin::parse);
            found.patterns.extend(cubin.map(|cubin| Pattern {
                sass: vec![cubin.arch],
                modules: 1,
                ..Pattern::default()
            }));
        }
        for at in memmem::find_iter(section, b".version ").take(MAX_PIECES) {
            let Some((code, is_own)) = section.get(at..).and_then(ptx) else { continue };
            found.has_own_kernel |= is_own;
            if !is_own {
                found.patterns.push(Pattern { ptx: vec![code], modules: 1, ..Pattern::default() });
            }
        }
    }
    found
}

/// `.version 8.4` and, on a line soon after, `.target sm_90a`; and whether it is cudock's own.
fn ptx(text: &[u8]) -> Option<((PtxArch, PtxIsa), bool)> {
    let text = String::from_utf8_lossy(text.get(..text.len().min(512))?).into_owned();
    let isa = text.strip_prefix(".version ")?.split_whitespace().next()?.parse().ok()?;
    let (_, target) = text.split_once(".target ")?;
    let target = target.split([',', '\n', '\r', ' ', '\0']).next()?.strip_prefix("sm_")?;
    Some(((format!("compute_{target}").parse().ok()?, isa), text.contains(OWN_KERNEL)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_as_text_tells_its_language_and_its_target() {
        let ((target, isa), is_own) =
            ptx(b".version 8.4\n.target sm_90a, debug\n.address_size 64\n").unwrap();
        assert_eq!((target.to_string(), isa.to_string()), ("compute_90a".into(), "8.4".into()));
        assert!(!is_own);
        assert!(ptx(b".version of this file is 3").is_none());
    }
}
