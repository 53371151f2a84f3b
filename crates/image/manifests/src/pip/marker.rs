//! Evaluates environment markers, `sys_platform == "linux" and extra == "gpu"`, for Linux and a processor.

use cudock_base::Arch;
use cudock_base::bug::Parts;

/// The limit for nested parentheses.
const MAX_DEPTH: usize = 32;

/// Whether a marker holds; `None` if that is unknown.
///
/// Fails with the byte of a syntax error.
pub(crate) fn evaluate(text: &str, arch: Arch, group: Option<&str>) -> Result<Option<bool>, usize> {
    let mut parser = Parser { text, at: 0, arch, group };
    let held = parser.either(0)?;
    parser.skip_space();
    if parser.at < text.len() { Err(parser.at) } else { Ok(held) }
}

/// Whether one of two conditions holds; `None` if that is unknown.
pub(crate) fn any(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (one, other) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    arch: Arch,
    group: Option<&'a str>,
}

#[derive(Clone, Copy)]
enum Operand<'a> {
    Known(&'a str),
    Literal(&'a str),
    /// An extra, which is known only if it is the requirement's own group.
    Extra,
    Unknown,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.part(self.at..)
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn take(&mut self, symbol: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(symbol);
        self.at += if found { symbol.len() } else { 0 };
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        self.skip_space();
        let whole = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
        let found = self.rest().strip_prefix(word).is_some_and(whole);
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn either(&mut self, depth: usize) -> Result<Option<bool>, usize> {
        let mut held = self.both(depth)?;
        while self.take_word("or") {
            held = any(held, self.both(depth)?);
        }
        Ok(held)
    }

    fn both(&mut self, depth: usize) -> Result<Option<bool>, usize> {
        let not = |held: Option<bool>| held.map(|held| !held);
        let mut held = self.comparison(depth)?;
        while self.take_word("and") {
            held = not(any(not(held), not(self.comparison(depth)?)));
        }
        Ok(held)
    }

    fn comparison(&mut self, depth: usize) -> Result<Option<bool>, usize> {
        if self.take("(") {
            if depth == MAX_DEPTH {
                return Err(self.at);
            }
            let held = self.either(depth + 1)?;
            return if self.take(")") { Ok(held) } else { Err(self.at) };
        }
        let left = self.operand()?;
        let comparator = self.comparator()?;
        let right = self.operand()?;
        Ok(compare(left, comparator, right, self.group))
    }

    fn comparator(&mut self) -> Result<&'static str, usize> {
        if self.take_word("not") {
            return if self.take_word("in") { Ok("not in") } else { Err(self.at) };
        }
        if self.take_word("in") {
            return Ok("in");
        }
        let signs = ["===", "==", "!=", "~=", "<=", ">=", "<", ">"];
        signs.into_iter().find(|sign| self.take(sign)).ok_or(self.at)
    }

    fn operand(&mut self) -> Result<Operand<'a>, usize> {
        self.skip_space();
        let rest = self.rest();
        if let Some(quote) = rest.chars().next().filter(|first| matches!(first, '"' | '\'')) {
            let literal = rest.get(1..).and_then(|rest| rest.split_once(quote)).ok_or(self.at)?.0;
            self.at += literal.len() + 2;
            return Ok(Operand::Literal(literal));
        }
        let end = rest
            .find(|next: char| !next.is_alphanumeric() && next != '_' && next != '.')
            .unwrap_or(rest.len());
        let name = rest.part(..end);
        let operand = match name {
            "os_name" | "os.name" => Operand::Known("posix"),
            "sys_platform" | "sys.platform" => Operand::Known("linux"),
            "platform_system" => Operand::Known("Linux"),
            "platform_machine" | "platform.machine" => Operand::Known(self.arch.name()),
            "platform_python_implementation" | "platform.python_implementation" => Operand::Known("CPython"),
            "implementation_name" => Operand::Known("cpython"),
            "extra" => Operand::Extra,
            "python_version"
            | "python_full_version"
            | "platform_release"
            | "platform_version"
            | "platform.version"
            | "implementation_version"
            | "extras"
            | "dependency_groups" => Operand::Unknown,
            _ => return Err(self.at),
        };
        self.at += end;
        Ok(operand)
    }
}

fn compare(left: Operand<'_>, comparator: &str, right: Operand<'_>, group: Option<&str>) -> Option<bool> {
    match (left, comparator, right) {
        (Operand::Extra, "==", Operand::Literal(name)) | (Operand::Literal(name), "==", Operand::Extra) => {
            (group == Some(name)).then_some(true)
        }
        (
            Operand::Known(left) | Operand::Literal(left),
            _,
            Operand::Known(right) | Operand::Literal(right),
        ) => match comparator {
            "==" | "===" => Some(left == right),
            "!=" => Some(left != right),
            "in" => Some(right.contains(left)),
            "not in" => Some(!right.contains(left)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_evaluated_for_linux_and_the_processor() {
        let cases = [
            ("sys_platform == 'linux'", Ok(Some(true))),
            ("platform_system != \"Linux\"", Ok(Some(false))),
            ("'linux' in sys_platform", Ok(Some(true))),
            ("platform_machine not in 'arm64 aarch64'", Ok(Some(true))),
            ("sys_platform == 'win32' or platform_machine == 'x86_64'", Ok(Some(true))),
            ("python_version >= '3.9'", Ok(None)),
            ("python_version < '3.9' and sys_platform == 'win32'", Ok(Some(false))),
            ("(python_version < '3.9' or sys_platform == 'linux') and os_name == 'posix'", Ok(Some(true))),
            ("extra == 'gpu'", Ok(Some(true))),
            ("extra == 'cpu'", Ok(None)),
            ("sys_platform = 'linux'", Err(13)),
            ("sys_platform == 'linux", Err(16)),
            ("color == 'red'", Err(0)),
            ("sys_platform == 'linux' sys_platform", Err(24)),
            ("", Err(0)),
        ];
        for (text, held) in cases {
            assert_eq!(evaluate(text, Arch::X86_64, Some("gpu")), held, "{text}");
        }
    }

    #[test]
    fn deeply_nested_parentheses_are_rejected() {
        assert!(evaluate(&"(".repeat(1 << 20), Arch::X86_64, None).is_err());
    }
}
