//! The settings of `serve` that are searched, for one model on one device.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use cudock_base::UsageError;
use cudock_base::text::format::alternatives;
use cudock_engine::EngineSettings;
use cudock_engine_onnx::OnnxSettings;
use cudock_project::{DeviceChoice, Precision, ServeOptions};
use cudock_serve::{EngineKind, ModelSettings, SettingsError};
use schemars::JsonSchema;
use serde::Serialize;

use crate::search::{AxisShape, Config, Space};

/// Row counts for padding and CUDA graphs, unless the user has set others: those that occur when a server is not full.
/// More would take longer to capture than they gain.
const PREFERRED: [usize; 6] = [1, 8, 32, 64, 128, 256];
/// How preferred sizes are used: not at all, for padding, or for padding and CUDA graphs. The names of the last two are keys.
const PREFERRED_KEY: &str = "preferred";
const NONE: &str = "none";
const PAD_ROWS: &str = "pad_rows";
const GRAPHS: &str = "graphs";
/// Lanes of a GPU engine that are tried; Python models gain from more, since filling a lane takes Python's lock.
const GPU_LANES: [usize; 7] = [1, 2, 3, 4, 6, 8, 10];
/// Maximum number of lanes and sessions of a CPU engine that are tried.
const MAX_CPU_LANES: usize = 16;
const MAX_SESSIONS: usize = 4;

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum SettingValue {
    Count(usize),
    Counts(Vec<usize>),
    Switch(bool),
    Name(&'static str),
}

impl SettingValue {
    fn count(&self) -> Option<usize> {
        match self {
            Self::Count(count) => Some(*count),
            _ => None,
        }
    }
}

/// Formats the value as TOML.
impl fmt::Display for SettingValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(out, "{count}"),
            Self::Counts(counts) => write!(out, "{counts:?}"),
            Self::Switch(is_on) => write!(out, "{is_on}"),
            Self::Name(name) => write!(out, "\"{name}\""),
        }
    }
}

/// Settings by key.
pub(crate) type SettingMap = BTreeMap<&'static str, SettingValue>;

/// One setting to search, as `KEY` or `KEY=VALUE,VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisFilter {
    key: String,
    /// The values to try; the usual ones if empty.
    values: Vec<String>,
}

impl FromStr for AxisFilter {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let (key, values) = text.split_once('=').unwrap_or((text, ""));
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        let values = values.into_iter().filter(|value| !value.is_empty()).collect();
        Ok(Self { key: key.trim().replace('-', "_"), values })
    }
}

struct ServeAxis {
    key: &'static str,
    values: Vec<SettingValue>,
    /// The value without the key.
    default: SettingValue,
    current: SettingValue,
}

impl ServeAxis {
    fn index(&self, value: &SettingValue) -> usize {
        self.values.iter().position(|other| other == value).unwrap_or_default()
    }
}

/// The axes for one model, and what its `cudock.toml` has now.
pub(crate) struct ServeSpace {
    axes: Vec<ServeAxis>,
    /// The settings that result from the file.
    current: SettingMap,
    /// The keys in the file.
    written: SettingMap,
    /// The user's own preferred sizes.
    preferred: Vec<usize>,
    processors: usize,
    on_gpu: bool,
}

/// The properties of a model that decide which settings are searched.
#[derive(Clone, Debug)]
pub(crate) struct TunedModel {
    pub(crate) is_python: bool,
    /// The options in `cudock.toml`, with the device resolved.
    pub(crate) options: ServeOptions,
    pub(crate) processors: usize,
}

impl ServeSpace {
    pub(crate) fn new(model: &TunedModel, filters: &[AxisFilter]) -> Result<Self, TuneSpaceError> {
        let options = &model.options;
        let current = values_of(model, options)?;
        let untuned = ServeOptions {
            threads: None,
            lanes: None,
            sessions: None,
            nhwc: None,
            graphs: None,
            max_batch: None,
            preferred: None,
            pad_rows: None,
            precision: None,
            ..options.clone()
        };
        let default = values_of(model, &untuned)?;
        let value =
            |map: &SettingMap, key: &str| map.get(key).cloned().unwrap_or(SettingValue::Switch(false));
        let mut axes: Vec<ServeAxis> = candidates(model)
            .into_iter()
            .map(|(key, values)| ServeAxis {
                key,
                values,
                default: value(&default, key),
                current: value(&current, key),
            })
            .collect();
        apply_filters(&mut axes, filters)?;
        for axis in &mut axes {
            if !axis.values.contains(&axis.current) {
                axis.values.push(axis.current.clone());
            }
            // Counts are in order, so that neighbors are similar.
            axis.values.sort_by_key(|value| value.count().unwrap_or_default());
        }
        let on_gpu = options.device.is_some_and(DeviceChoice::is_gpu);
        let preferred = options.preferred.clone().unwrap_or_default();
        let written = written_keys(options);
        Ok(Self { axes, current, written, preferred, processors: model.processors, on_gpu })
    }

    /// The space as the search sees it.
    pub(crate) fn space(&self) -> Space {
        let current = self.config(&[]);
        let guesses = self.guesses();
        let is_ordered = |axis: &ServeAxis| matches!(axis.current, SettingValue::Count(_));
        let axes = self
            .axes
            .iter()
            .map(|axis| AxisShape { values: axis.values.len(), is_ordered: is_ordered(axis) })
            .collect();
        let rules = Rules::new(self, &current);
        Space { axes, current, guesses, is_valid: Box::new(move |config| rules.allow(config)) }
    }

    /// The current combination with other values, as far as they are searched.
    fn config(&self, changes: &[(&str, SettingValue)]) -> Config {
        let index = |axis: &ServeAxis| {
            let change = changes.iter().find(|(key, value)| *key == axis.key && axis.values.contains(value));
            axis.index(change.map_or(&axis.current, |(_, value)| value))
        };
        Config(self.axes.iter().map(index).collect())
    }

    fn guesses(&self) -> Vec<Config> {
        use SettingValue::{Count, Name, Switch};
        if self.on_gpu {
            let fast = [
                (PREFERRED_KEY, Name(GRAPHS)),
                ("precision", Name("fp16")),
                ("nhwc", Switch(true)),
                ("lanes", Count(3)),
                ("max_batch", Count(128)),
            ];
            return vec![self.config(&fast)];
        }
        // The processors for one batch, for as many batches as possible, and what is between.
        let threads = self.axes.iter().find(|axis| axis.key == "threads").map(|axis| axis.values.as_slice());
        let split = |value: &SettingValue| {
            let threads = value.count()?;
            let lanes = (self.processors / threads.max(1)).max(1);
            Some(self.config(&[("threads", Count(threads)), ("lanes", Count(lanes))]))
        };
        threads.unwrap_or_default().iter().filter_map(split).collect()
    }

    /// Rows in flight that keep the current settings busy: one batch for each lane, and one that waits.
    pub(crate) fn busy_rows(&self) -> usize {
        let count = |key: &str| self.current.get(key).and_then(SettingValue::count).unwrap_or(1);
        count("max_batch") * count("lanes") * 2
    }

    fn value(&self, config: &Config, key: &str) -> Option<&SettingValue> {
        let axis = self.axes.iter().position(|axis| axis.key == key)?;
        self.axes.get(axis)?.values.get(config.value(axis))
    }

    /// The preferred sizes of a combination.
    fn preferred(&self, config: &Config) -> Vec<usize> {
        let max_batch = self.value(config, "max_batch").or(self.current.get("max_batch"));
        let max_batch = max_batch.and_then(SettingValue::count).unwrap_or(1);
        let within =
            |sizes: &[usize]| sizes.iter().copied().filter(|size| *size <= max_batch).collect::<Vec<_>>();
        let own = within(&self.preferred);
        if !own.is_empty() {
            return own;
        }
        let mut sizes = within(&PREFERRED);
        if sizes.last() != Some(&max_batch) {
            sizes.push(max_batch);
        }
        sizes
    }

    /// The settings of a combination that differ from the defaults.
    pub(crate) fn settings(&self, config: &Config) -> SettingMap {
        let mut settings = SettingMap::new();
        let mut needs_sizes = false;
        for (index, axis) in self.axes.iter().enumerate() {
            match axis.values.get(config.value(index)).filter(|value| **value != axis.default) {
                Some(SettingValue::Name(key)) if axis.key == PREFERRED_KEY => {
                    settings.insert(key, SettingValue::Switch(true));
                    needs_sizes = true;
                }
                Some(value) => drop(settings.insert(axis.key, value.clone())),
                None => {}
            }
        }
        if needs_sizes || !self.preferred.is_empty() {
            settings.insert(PREFERRED_KEY, SettingValue::Counts(self.preferred(config)));
        }
        settings
    }

    /// The changes to `[serve]` that make the current settings those of a combination.
    pub(crate) fn changes(&self, config: &Config) -> Vec<(&'static str, Option<String>)> {
        let is_current =
            |(index, axis): (usize, &ServeAxis)| config.value(index) == axis.index(&axis.current);
        if self.axes.iter().enumerate().all(is_current) {
            return Vec::new();
        }
        let settings = self.settings(config);
        let mut changes = Vec::new();
        let has_preferred = self.axes.iter().any(|axis| axis.key == PREFERRED_KEY);
        let uses = [GRAPHS, PAD_ROWS].into_iter().filter(|_| has_preferred);
        let plain = self.axes.iter().map(|axis| axis.key).filter(|key| *key != PREFERRED_KEY);
        for key in plain.chain(uses).chain([PREFERRED_KEY]) {
            let (written, wanted) = (self.written.get(key), settings.get(key));
            // A default that is written may stay.
            let axis = self.axes.iter().find(|axis| axis.key == key);
            let default = axis.map_or(SettingValue::Switch(false), |axis| axis.default.clone());
            let is_same = written == wanted || (wanted.is_none() && written == Some(&default));
            if !is_same {
                changes.push((key, wanted.map(ToString::to_string)));
            }
        }
        changes
    }
}

/// A space that cannot be built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TuneSpaceError {
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

/// Which combinations are worth trying.
struct Rules {
    /// The key of each axis, with the counts that are its values.
    axes: Vec<(&'static str, Vec<usize>)>,
    /// Maximum number of threads of all lanes on a CPU.
    max_threads: usize,
    current: Config,
}

impl Rules {
    fn new(space: &ServeSpace, current: &Config) -> Self {
        let number = |value: &SettingValue| value.count().unwrap_or_default();
        let axes = space.axes.iter().map(|axis| (axis.key, axis.values.iter().map(number).collect()));
        let max_threads = if space.on_gpu { usize::MAX } else { space.processors.saturating_mul(2) };
        Self { axes: axes.collect(), max_threads, current: current.clone() }
    }

    fn allow(&self, config: &Config) -> bool {
        let value = |key: &str| {
            let axis = self.axes.iter().position(|(name, _)| *name == key)?;
            self.axes.get(axis)?.1.get(config.value(axis)).copied()
        };
        let is_within = |one: &str, other: &str| match (value(one), value(other)) {
            (Some(one), Some(other)) => one <= other,
            _ => true,
        };
        // Fewer lanes than sessions count as equal.
        let is_distinct = is_within("sessions", "lanes");
        let threads = value("threads").unwrap_or(1).saturating_mul(value("lanes").unwrap_or(1));
        *config == self.current || (is_distinct && threads <= self.max_threads)
    }
}

/// Keys in the order of their expected effect, with the values to try.
fn candidates(model: &TunedModel) -> Vec<(&'static str, Vec<SettingValue>)> {
    use SettingValue::{Count, Name, Switch};
    let counts = |values: &[usize]| values.iter().copied().map(Count).collect::<Vec<_>>();
    let names = |values: &[&'static str]| values.iter().copied().map(Name).collect::<Vec<_>>();
    let device = model.options.device.unwrap_or_default();
    let mut axes = Vec::new();
    let mut add = |key, values| axes.push((key, values));
    if device.is_gpu() {
        let on_cuda = device == DeviceChoice::Cuda;
        add(PREFERRED_KEY, names(if on_cuda { &[NONE, PAD_ROWS, GRAPHS] } else { &[NONE, PAD_ROWS] }));
        add("precision", names(if model.is_python { &["fp32", "fp16", "bf16"] } else { &["fp32", "fp16"] }));
        if on_cuda {
            add("nhwc", vec![Switch(false), Switch(true)]);
        }
        let lanes = if model.is_python { GPU_LANES.len() } else { GPU_LANES.len() - 1 };
        add("lanes", counts(GPU_LANES.get(..lanes).unwrap_or_default()));
        if !model.is_python && on_cuda {
            add("sessions", counts(&[1, 2]));
        }
        add("max_batch", counts(&[16, 32, 64, 128, 256]));
    } else {
        let powers = |most: usize| {
            let powers = (0..usize::BITS).map_while(|power| 1_usize.checked_shl(power));
            powers.take_while(|power| *power <= most).collect::<Vec<_>>()
        };
        let lanes = powers((model.processors * 2).min(MAX_CPU_LANES));
        let mut threads = powers(model.processors);
        if threads.last() != Some(&model.processors) {
            threads.push(model.processors);
        }
        add("threads", counts(&threads));
        add("lanes", counts(&lanes));
        add("max_batch", counts(&[4, 8, 16, 32, 64, 128, 256]));
        if !model.is_python {
            add("sessions", counts(&powers(model.processors.min(MAX_SESSIONS))));
        }
    }
    if model.options.batch == Some(false) {
        axes.retain(|(key, _)| !matches!(*key, "max_batch" | PREFERRED_KEY));
    }
    axes
}

/// Keeps the axes that the user named, with the user's values.
fn apply_filters(searched: &mut Vec<ServeAxis>, filters: &[AxisFilter]) -> Result<(), UsageError> {
    for filter in filters {
        let Some(axis) = searched.iter_mut().find(|axis| axis.key == filter.key) else {
            let keys: Vec<&str> = searched.iter().map(|axis| axis.key).collect();
            return Err(UsageError::new(format!("cannot search `{}` for this model and device", filter.key))
                .hint(format!("name {}", alternatives(&keys))));
        };
        let parse = |text: &String| {
            let named = axis.values.iter().find(|value| value.to_string().trim_matches('"') == text);
            let count = || match axis.current {
                SettingValue::Count(_) => {
                    text.parse().ok().filter(|count| *count > 0).map(SettingValue::Count)
                }
                _ => None,
            };
            named
                .cloned()
                .or_else(count)
                .ok_or_else(|| UsageError::new(format!("invalid value `{text}` of {}", axis.key)))
        };
        if !filter.values.is_empty() {
            let values = filter.values.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
            axis.values = values;
            axis.values.dedup();
        }
    }
    if !filters.is_empty() {
        searched.retain(|axis| filters.iter().any(|filter| filter.key == axis.key));
    }
    Ok(())
}

/// The searched settings that options have themselves.
fn written_keys(options: &ServeOptions) -> SettingMap {
    use SettingValue::{Count, Counts, Name, Switch};
    let written = [
        ("threads", options.threads.map(Count)),
        ("lanes", options.lanes.map(Count)),
        ("sessions", options.sessions.map(Count)),
        ("max_batch", options.max_batch.map(Count)),
        ("precision", options.precision.map(|precision| Name(precision.name()))),
        ("nhwc", options.nhwc.map(Switch)),
        (GRAPHS, options.graphs.map(Switch)),
        (PAD_ROWS, options.pad_rows.map(Switch)),
        (PREFERRED_KEY, options.preferred.clone().map(Counts)),
    ];
    written.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

/// The values of all searched settings that options result in.
fn values_of(model: &TunedModel, options: &ServeOptions) -> Result<SettingMap, SettingsError> {
    let onnx = EngineSettings::new("", OnnxSettings::new(""));
    let path = Path::new(if model.is_python { "model.py" } else { "model.onnx" });
    let resolved = ModelSettings::new(options, path, Some(onnx))?;
    let sessions = match resolved.engine.kind {
        EngineKind::Onnx(onnx) => onnx.sessions,
        EngineKind::Python(_) => 1,
    };
    let precision = options.precision.unwrap_or(Precision::Fp32).name();
    let preferred = match (options.graphs, options.pad_rows) {
        (Some(true), _) => GRAPHS,
        (_, Some(true)) => PAD_ROWS,
        _ => NONE,
    };
    Ok(SettingMap::from([
        ("threads", SettingValue::Count(resolved.engine.threads)),
        ("lanes", SettingValue::Count(resolved.engine.lanes)),
        ("sessions", SettingValue::Count(sessions)),
        ("max_batch", SettingValue::Count(resolved.batcher.max_rows)),
        ("precision", SettingValue::Name(precision)),
        ("nhwc", SettingValue::Switch(options.nhwc.unwrap_or(false))),
        (PREFERRED_KEY, SettingValue::Name(preferred)),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cudock_project::edit_serve;

    fn model(device: &str, toml: &str, is_python: bool) -> TunedModel {
        let text = format!("[serve]\ndevice = '{device}'\n{toml}");
        let options = cudock_project::parse(Path::new("cudock.toml"), &text).unwrap().serve;
        TunedModel { is_python, options, processors: 4 }
    }

    fn space(device: &str, toml: &str, filters: &[&str]) -> ServeSpace {
        let filters: Vec<AxisFilter> = filters.iter().map(|filter| filter.parse().unwrap()).collect();
        ServeSpace::new(&model(device, toml, false), &filters).unwrap()
    }

    #[test]
    fn every_valid_combination_can_be_served() {
        for (device, toml, is_python) in [
            ("cpu", "", false),
            ("cpu", "sessions = 3\nthreads = 7\nmax_batch = 48", false),
            ("cuda", "", false),
            ("cuda", "graphs = true\npreferred = [4, 100]\npad_rows = true", false),
            ("cuda", "precision = 'bf16'", true),
            ("cpu", "batch = false", true),
            ("tensorrt", "", false),
        ] {
            let model = model(device, toml, is_python);
            let space = ServeSpace::new(&model, &[]).unwrap();
            let search = space.space();
            assert!((search.is_valid)(&search.current), "{device} {toml}");
            assert_eq!(space.changes(&search.current), [], "{device} {toml}");
            let text = format!("[serve]\ndevice = '{device}'\n{toml}\n");
            for config in search.all() {
                let edited = edit_serve(Path::new("cudock.toml"), &text, &space.changes(&config)).unwrap();
                let options = cudock_project::parse(Path::new("cudock.toml"), &edited).unwrap().serve;
                let values = values_of(&model, &options).unwrap_or_else(|error| panic!("{error}\n{edited}"));
                for (index, axis) in space.axes.iter().enumerate() {
                    assert_eq!(values.get(axis.key), axis.values.get(config.value(index)), "{edited}");
                }
            }
        }
    }

    #[test]
    fn what_equals_the_default_is_not_written() {
        let space = space("cpu", "max_batch = 64", &["max_batch", "lanes"]);
        let search = space.space();
        let (lanes, max_batch) = (0, 1);
        let index = |axis: usize, count| space.axes[axis].index(&SettingValue::Count(count));
        assert_eq!(space.axes[lanes].key, "lanes");
        let config = search.current.with(max_batch, index(max_batch, 32)).with(lanes, index(lanes, 2));
        assert_eq!(space.changes(&config), [("lanes", Some("2".to_owned())), ("max_batch", None)]);
        assert_eq!(space.settings(&config), SettingMap::from([("lanes", SettingValue::Count(2))]));
    }

    #[test]
    fn graphs_come_with_their_sizes() {
        let space = space("cuda", "", &["preferred", "max_batch=48"]);
        let config = space.guesses().remove(0);
        assert_eq!(space.settings(&config)["graphs"], SettingValue::Switch(true));
        assert_eq!(space.settings(&config)["preferred"], SettingValue::Counts(vec![1, 8, 32, 64, 128]));
        let smaller = config.with(1, 0);
        assert_eq!(space.settings(&smaller)["preferred"], SettingValue::Counts(vec![1, 8, 32, 48]));
    }

    #[test]
    fn the_search_can_be_restricted() {
        let few = space("cuda", "", &["lanes=2,5", "precision=fp16"]);
        let values: Vec<(&str, String)> = few
            .axes
            .iter()
            .map(|axis| (axis.key, axis.values.iter().map(|value| format!("{value} ")).collect()))
            .collect();
        assert_eq!(values, [("precision", "\"fp16\" \"fp32\" ".to_owned()), ("lanes", "2 5 ".to_owned())]);
        let reject = |filter: &str| {
            let filters = [filter.parse().unwrap()];
            ServeSpace::new(&model("cpu", "", false), &filters).err().unwrap().to_string()
        };
        assert_eq!(reject("nhwc"), "cannot search `nhwc` for this model and device");
        assert_eq!(reject("lanes=two"), "invalid value `two` of lanes");
        assert_eq!(reject("lanes=0"), "invalid value `0` of lanes");
    }

    #[test]
    fn sessions_and_threads_stay_within_lanes_and_processors() {
        let space = space("cpu", "", &[]);
        let search = space.space();
        for config in search.all().iter().filter(|config| **config != search.current) {
            let count = |key: &str| match space.value(config, key) {
                Some(SettingValue::Count(count)) => *count,
                other => panic!("{key}: {other:?}"),
            };
            assert!(count("sessions") <= count("lanes") && count("threads") * count("lanes") <= 8);
        }
    }
}
