//! `az` command lines, wherever they stand: in scripts, notes, pipelines and texts of programs.

use super::draft::{Draft, Found};
use super::key::is_low_priority;
use super::names::{folded, is_bare_gpu_size, is_gpu_size, is_name_byte};
use super::shell::{self, Located, Word};
use super::variables::Variables;
use crate::choice::{Interface, Service, What};

/// Groups of commands that say something about GPUs or regions.
const GROUPS: &[&str] = &[
    "vm",
    "vmss",
    "container",
    "batch",
    "batchai",
    "ml",
    "aks",
    "group",
    "configure",
    "deployment",
    "sig",
    "acs",
];

/// Options whose value is a size.
const SIZE_OPTIONS: &[&str] =
    &["--size", "--vm-size", "--vm-sku", "--node-vm-size", "--instance-type", "-s", "--agent-vm-size"];

/// Finds the commands of a text.
pub(super) fn read(text: &str, variables: &Variables<'_>, draft: &mut Draft<'_>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(offset) = text.get(at..).and_then(|rest| rest.find("az")) {
        let start = at + offset;
        at = start + 2;
        let before = start.checked_sub(1).and_then(|index| bytes.get(index)).copied();
        let apart = before.is_none_or(|byte| !is_name_byte(byte) && !b".-$".contains(&byte));
        let blank = matches!(bytes.get(at), Some(b' ' | b'\t'));
        if !(apart && blank) || draft.in_comment(start) {
            continue;
        }
        let quote = before.filter(|byte| matches!(byte, b'"' | b'\''));
        let (words, end) = shell::words(text, at, quote, variables);
        if let Some(command) = Command::of(&words, start) {
            command.read(draft);
            at = end.max(at);
        }
    }
}

struct Command {
    /// `az vm create`
    name: String,
    service: Option<Service>,
    start: usize,
    options: Vec<Given>,
}

/// An option with its value.
struct Given {
    name: String,
    at: (usize, usize),
    value: Option<Located>,
}

impl Command {
    fn of(words: &[Word], start: usize) -> Option<Self> {
        let path: Vec<String> =
            words.iter().map(Word::text).take_while(|word| is_command_word(word)).take(4).collect();
        let group = path.first().filter(|group| GROUPS.contains(&group.as_str()))?;
        let service = match group.as_str() {
            "vm" | "vmss" => Some(Service::Vm),
            "container" => Some(Service::Aci),
            "batch" => Some(Service::Batch),
            "ml" => Some(Service::Ml),
            "aks" | "acs" => Some(Service::Aks),
            _ => None,
        };
        let mut options: Vec<Given> = Vec::new();
        for word in words.iter().skip(path.len()) {
            let text = word.text();
            let Some(located) = word.located() else { continue };
            if text.starts_with('-') && text.len() > 1 {
                let (name, value) = match text.split_once('=') {
                    Some((name, _)) => (name.to_owned(), word.after(name.len() + 1)),
                    None => (text, None),
                };
                options.push(Given { name, at: (located.start, located.end), value });
            } else if let Some(open) = options.last_mut().filter(|option| option.value.is_none()) {
                open.value = Some(located);
            } else {
                // Further values of an option that takes several.
                let name = options.last().map_or_else(String::new, |option| option.name.clone());
                options.push(Given { name, at: (located.start, located.end), value: Some(located) });
            }
        }
        Some(Self { name: format!("az {}", path.join(" ")), service, start, options })
    }

    fn value_of(&self, names: &[&str]) -> Option<&Located> {
        self.options.iter().find(|option| names.contains(&option.name.as_str()))?.value.as_ref()
    }

    fn read(&self, draft: &mut Draft<'_>) {
        let values = self.options.iter().filter_map(|option| option.value.as_ref());
        let mut defaults = values.filter_map(|value| value.text.strip_prefix("location="));
        let given = self.value_of(&["--location", "-l"]).map(|located| located.text.as_str());
        let region = given.or_else(|| defaults.next_back());
        if let Some(region) = region {
            draft.region(region);
        }
        let tier = self.value_of(&["--priority", "--tier", "--vm-priority"]);
        let low_priority = tier.is_some_and(|located| is_low_priority(&located.text));
        let found = |located: &Located, what: What, by: String| Found {
            by,
            service: self.service,
            region: region.map(str::to_owned),
            low_priority,
            ..Found::new(located.start, located.end, what)
        };
        for option in &self.options {
            let Some(value) = &option.value else { continue };
            let by = format!("{} {}", self.name, option.name);
            let expected = SIZE_OPTIONS.contains(&option.name.as_str()) && is_bare_gpu_size(&value.text);
            if expected || is_gpu_size(&value.text) {
                draft.add(found(value, What::Size { name: value.text.clone() }, by));
            } else if option.name == "--target-low-priority-nodes"
                && value.text.parse::<u32>().is_ok_and(|count| count > 0)
            {
                draft.add(found(value, What::LowPriorityNodes, by));
            } else if option.name == "--image" && self.service == Some(Service::Vm) && is_cut_off(&value.text)
            {
                draft.add(found(value, What::ImageReference { reference: value.text.clone() }, by));
            } else if folded(value.text.split('=').next().unwrap_or_default()) == "skipgpudriverinstall" {
                draft.add(found(value, What::SkipDriver, by));
            }
        }
        for option in self.options.iter().filter(|option| option.name == "--skip-gpu-driver-install") {
            let at = Located { text: String::new(), start: option.at.0, end: option.at.1 };
            draft.add(found(&at, What::SkipDriver, self.name.clone()));
        }
        self.container_gpus(draft, region);
        if self.name.starts_with("az ml computetarget") {
            let name = "az ml computetarget".to_owned();
            let end = self.start + name.len();
            let what = What::Interface { interface: Interface::MachineLearningV1, name };
            let service = Some(Service::Ml);
            draft.add(Found { service, ..Found::new(self.start, end, what) });
        }
    }

    /// `--gpu-count` and `--gpu-sku` of `az container create`, which tutorials give and the command does not know.
    fn container_gpus(&self, draft: &mut Draft<'_>, region: Option<&str>) {
        if self.service != Some(Service::Aci) {
            return;
        }
        let mut options = self.options.iter().filter(|option| option.name.starts_with("--gpu"));
        let Some(first) = options.next() else { return };
        let sku = self.value_of(&["--gpu-sku", "--gpu-type"]).map(|located| located.text.clone());
        let count =
            self.value_of(&["--gpu-count", "--gpus", "--gpu"]).and_then(|located| located.text.parse().ok());
        let end = options.next_back().unwrap_or(first);
        let end = end.value.as_ref().map_or(end.at.1, |value| value.end.max(end.at.1));
        let end = if end > first.at.0 { end } else { first.at.1 };
        draft.add(Found {
            by: format!("{} {}", self.name, first.name),
            service: Some(Service::Aci),
            region: region.map(str::to_owned),
            ..Found::new(first.at.0, end, What::ContainerGpu { sku, count, by_option: true })
        });
    }
}

fn is_command_word(word: &str) -> bool {
    word.starts_with(|letter: char| letter.is_ascii_lowercase())
        && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-' || byte.is_ascii_digit())
}

/// Whether an image reference has a publisher and an offer, and not all that must follow.
fn is_cut_off(reference: &str) -> bool {
    !reference.contains('/') && (2..4).contains(&reference.split(':').count())
}
