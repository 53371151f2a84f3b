//! How much memory each GPU must have.

use cudock_base::UsageError;
use cudock_base::text::error_chain;
use cudock_base::text::format::fixed_bytes;
use cudock_model::{EstimateOptions, Model, ModelError, NumberFormat, estimate};
use cudock_project::ByteSize;

use crate::builder::{WorkloadBuilder, flag_or_key};
use crate::inputs::InputFile;
use crate::origin::Origin;

const GB: f64 = 1e9;

impl<'a> WorkloadBuilder<'a> {
    /// The model, if one is named that can be read.
    pub(crate) fn model(&mut self) -> Result<Option<&'a Model>, UsageError> {
        let Some(InputFile { origin, content, .. }) = &self.inputs.model else { return Ok(None) };
        match content {
            Ok(model) => Ok(Some(model)),
            Err(error @ (ModelError::Unknown { .. } | ModelError::NoModel { .. })) => {
                self.unread_model = Some(error.to_string());
                Ok(None)
            }
            Err(error) => Err(self.invalid(*origin, error_chain(error), None)),
        }
    }

    pub(crate) fn gpu_memory(&mut self, model: Option<&Model>, models: &[String]) -> Result<u64, UsageError> {
        let needs = &self.file().needs;
        let given = flag_or_key(self.flags.gpu_memory, "--gpu-memory", needs.gpu_memory, "needs.gpu_memory");
        let given = given.map(|(ByteSize(bytes), origin)| (bytes, origin));
        let problem = "must be larger than zero; omit it if any memory is enough";
        if let Some(bytes) = self.above_zero(given, problem)? {
            return Ok(bytes);
        }
        if let Some(model) = model {
            return Ok(self.estimated(model));
        }
        let unread = self.unread_model.as_ref().map_or_else(String::new, |problem| format!("; {problem}"));
        let (gigabytes, whose) = if models.is_empty() {
            (self.smallest(), "the smallest whole GPU on sale".to_owned())
        } else {
            (self.least_memory(models), format!("the smallest {}", models.join(" or ")))
        };
        let give = format!("give `gpu_memory`, --gpu-memory, or a model{unread}");
        let Some(gigabytes) = gigabytes else {
            let source = format!("the memory of {} is not in the tables; {give}", models.join(" or "));
            self.assume("needs.gpu_memory", "any", source);
            return Ok(0);
        };
        let bytes = bytes(gigabytes);
        self.assume("needs.gpu_memory", fixed_bytes(bytes), format!("assumed: {whose}; {give}"));
        Ok(bytes)
    }

    fn estimated(&mut self, model: &Model) -> u64 {
        let file = self.file();
        let precision = file.needs.precision.and_then(|format| NumberFormat::from_name(format.name()));
        let rows = file.workload.batch.unwrap_or(1);
        let training = file.workload.training == Some(true);
        let estimate = estimate(model, EstimateOptions { precision, rows, training });
        let name = model.files.first().and_then(|path| path.file_name());
        let name = name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let more = match model.files.len() {
            0 | 1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        let kept = match precision {
            Some(precision) => format!(" ({precision}: {})", self.describe(Origin::Key("needs.precision"))),
            None => String::new(),
        };
        let source =
            format!("inferred from {name}{more}: {}{kept}; the whole model on each GPU", estimate.summary());
        self.assume("needs.gpu_memory", fixed_bytes(estimate.total()), source);
        estimate.total()
    }

    /// The least memory of a whole NVIDIA GPU among sizes on sale.
    fn smallest(&self) -> Option<f64> {
        let gpus = self.facts.gpus();
        let nvidia = |id: &str| {
            let row = gpus.gpu.iter().find(|gpu| gpu.id == id);
            row.is_some_and(|gpu| gpu.vendor == cudock_facts::tables::Vendor::Nvidia)
        };
        let sizes = self.facts.sizes().size.iter();
        let on_sale = sizes.filter(|size| size.is_on_sale(self.today));
        on_sale
            .filter(|size| size.gpu_count.is_some_and(|count| count >= 1.0))
            .filter(|size| size.gpu.as_deref().is_some_and(nvidia))
            .filter_map(|size| size.gpu_memory_gb)
            .filter(|gigabytes| gigabytes.is_finite())
            .min_by(f64::total_cmp)
    }

    /// The least memory of any variant of these GPUs, whether a size with it is on sale or not: there are V100s with 16 GB
    /// and with 32 GB, and the plan finds out which of them fit.
    fn least_memory(&self, models: &[String]) -> Option<f64> {
        let wanted = |gpu: &str| models.iter().any(|model| model == gpu);
        let rows = self.facts.gpus().gpu.iter().filter(|row| wanted(&row.id));
        let gpus = rows.flat_map(|row| row.memory_gb.iter().copied().map(f64::from));
        let sizes = self.facts.sizes().size.iter().filter(|size| size.gpu.as_deref().is_some_and(wanted));
        let whole = sizes.filter(|size| size.gpu_count.is_some_and(|count| count >= 1.0));
        let known = gpus.chain(whole.filter_map(|size| size.gpu_memory_gb));
        known.filter(|gigabytes| gigabytes.is_finite() && *gigabytes > 0.0).min_by(f64::total_cmp)
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a figure of the tables, and not negative"
)]
fn bytes(gigabytes: f64) -> u64 {
    (gigabytes.max(0.0) * GB) as u64
}
