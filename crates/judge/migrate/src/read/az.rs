//! Reads `az` command lines in scripts, notes, pipelines and strings of programs.

use super::collector::ChoiceCollector;
use super::key::is_low_priority;
use super::names::{folded, is_bare_gpu_size, is_gpu_size, is_name_byte};
use super::syntax::shell::{self, ShellArg};
use super::syntax::variables::{Located, Variables};
use crate::choice::{Choice, ChoiceKind, Interface};
use cudock_facts::services::AzureService;

/// Command groups that choose GPUs or regions, and their services.
const GROUPS: [(&str, Option<AzureService>); 12] = [
    ("vm", Some(AzureService::Vm)),
    ("vmss", Some(AzureService::Vm)),
    ("container", Some(AzureService::Aci)),
    ("batch", Some(AzureService::Batch)),
    ("ml", Some(AzureService::Ml)),
    ("aks", Some(AzureService::Aks)),
    ("acs", Some(AzureService::Aks)),
    ("batchai", None),
    ("group", None),
    ("configure", None),
    ("deployment", None),
    ("sig", None),
];

/// Options whose value is a size.
const SIZE_OPTIONS: &[&str] =
    &["--size", "--vm-size", "--vm-sku", "--node-vm-size", "--instance-type", "-s", "--agent-vm-size"];

/// Finds the commands of a text.
pub(super) fn read(text: &str, variables: &Variables<'_>, collector: &mut ChoiceCollector<'_>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(offset) = text.get(at..).and_then(|rest| rest.find("az")) {
        let start = at + offset;
        at = start + 2;
        let before = start.checked_sub(1).and_then(|index| bytes.get(index)).copied();
        let apart = before.is_none_or(|byte| !is_name_byte(byte) && !b".-$".contains(&byte));
        let blank = matches!(bytes.get(at), Some(b' ' | b'\t'));
        if !(apart && blank) || collector.in_comment(start) {
            continue;
        }
        let quote = before.filter(|byte| matches!(byte, b'"' | b'\''));
        let (args, end) = shell::split_args(text, at, quote, variables);
        if let Some(command) = AzCommand::of(&args, start) {
            command.read(collector);
            at = end.max(at);
        }
    }
}

struct AzCommand {
    /// `az vm create`
    name: String,
    service: Option<AzureService>,
    start: usize,
    options: Vec<AzOption>,
}

struct AzOption {
    name: String,
    at: (usize, usize),
    value: Option<Located>,
}

impl AzCommand {
    fn of(args: &[ShellArg], start: usize) -> Option<Self> {
        let path: Vec<String> =
            args.iter().map(ShellArg::text).take_while(|arg| is_subcommand(arg)).take(4).collect();
        let group = path.first()?;
        let (_, service) = *GROUPS.iter().find(|(name, _)| name == group)?;
        let mut options: Vec<AzOption> = Vec::new();
        for arg in args.iter().skip(path.len()) {
            let text = arg.text();
            let Some(located) = arg.located() else { continue };
            if text.starts_with('-') && text.len() > 1 {
                let (name, value) = match text.split_once('=') {
                    Some((name, _)) => (name.to_owned(), arg.after(name.len() + 1)),
                    None => (text, None),
                };
                options.push(AzOption { name, at: (located.start, located.end), value });
            } else if let Some(open) = options.last_mut().filter(|option| option.value.is_none()) {
                open.value = Some(located);
            } else {
                // More values of an option that takes several.
                let name = options.last().map_or_else(String::new, |option| option.name.clone());
                options.push(AzOption { name, at: (located.start, located.end), value: Some(located) });
            }
        }
        Some(Self { name: format!("az {}", path.join(" ")), service, start, options })
    }

    fn value_of(&self, names: &[&str]) -> Option<&Located> {
        self.options.iter().find(|option| names.contains(&option.name.as_str()))?.value.as_ref()
    }

    fn read(&self, collector: &mut ChoiceCollector<'_>) {
        let values = self.options.iter().filter_map(|option| option.value.as_ref());
        let mut defaults = values.filter_map(|value| value.text.strip_prefix("location="));
        let given = self.value_of(&["--location", "-l"]).map(|located| located.text.as_str());
        let region = given.or_else(|| defaults.next_back());
        if let Some(region) = region {
            collector.set_region(region);
        }
        let tier = self.value_of(&["--priority", "--tier", "--vm-priority"]);
        let low_priority = tier.is_some_and(|located| is_low_priority(&located.text));
        let found = |located: &Located, kind: ChoiceKind, role: String| Choice {
            role,
            service: self.service,
            region: region.map(str::to_owned),
            low_priority,
            ..Choice::at(located.start, located.end, kind)
        };
        for option in &self.options {
            let Some(value) = &option.value else { continue };
            let role = format!("{} {}", self.name, option.name);
            let expected = SIZE_OPTIONS.contains(&option.name.as_str()) && is_bare_gpu_size(&value.text);
            if expected || is_gpu_size(&value.text) {
                collector.add(found(value, ChoiceKind::Size { name: value.text.clone() }, role));
            } else if option.name == "--target-low-priority-nodes"
                && value.text.parse::<u32>().is_ok_and(|count| count > 0)
            {
                collector.add(found(value, ChoiceKind::LowPriorityNodes, role));
            } else if option.name == "--image"
                && self.service == Some(AzureService::Vm)
                && is_incomplete_image(&value.text)
            {
                let reference = value.text.clone();
                collector.add(found(value, ChoiceKind::ImageReference { reference }, role));
            } else if folded(value.text.split('=').next().unwrap_or_default()) == "skipgpudriverinstall" {
                collector.add(found(value, ChoiceKind::SkipDriver, role));
            }
        }
        for option in self.options.iter().filter(|option| option.name == "--skip-gpu-driver-install") {
            let at = Located { text: String::new(), start: option.at.0, end: option.at.1 };
            collector.add(found(&at, ChoiceKind::SkipDriver, self.name.clone()));
        }
        self.container_gpus(collector, region);
        if self.name.starts_with("az ml computetarget") {
            let name = "az ml computetarget".to_owned();
            let end = self.start + name.len();
            let kind = ChoiceKind::Interface { interface: Interface::MachineLearningV1, name };
            let service = Some(AzureService::Ml);
            collector.add(Choice { service, ..Choice::at(self.start, end, kind) });
        }
    }

    /// `--gpu-count` and `--gpu-sku` of `az container create`, which tutorials use and the command does not have.
    fn container_gpus(&self, collector: &mut ChoiceCollector<'_>, region: Option<&str>) {
        if self.service != Some(AzureService::Aci) {
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
        collector.add(Choice {
            role: format!("{} {}", self.name, first.name),
            service: Some(AzureService::Aci),
            region: region.map(str::to_owned),
            ..Choice::at(first.at.0, end, ChoiceKind::ContainerGpu { sku, count, by_option: true })
        });
    }
}

fn is_subcommand(arg: &str) -> bool {
    arg.starts_with(|ch: char| ch.is_ascii_lowercase())
        && arg.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-' || byte.is_ascii_digit())
}

/// Whether an image reference has a publisher and an offer, but no SKU or version.
fn is_incomplete_image(reference: &str) -> bool {
    !reference.contains('/') && (2..4).contains(&reference.split(':').count())
}
