//! Settings of models that Python runs.

use cudock_engine_python::PythonSettings;
use cudock_project::{ElementType, Precision, ServeOptions, TensorDeclaration};
use cudock_tensor::{DType, TensorSpec};

use super::SettingsError;

/// Settings from options, whose preferred row counts are sorted.
pub(super) fn python_settings(
    options: &ServeOptions,
    preferred_rows: &[usize],
    on_gpu: bool,
) -> Result<PythonSettings, SettingsError> {
    let specs = |declared: &Option<Vec<TensorDeclaration>>| {
        declared.iter().flatten().map(spec).collect::<Result<Vec<_>, _>>()
    };
    let rows_if =
        |is_on: Option<bool>| if is_on == Some(true) { preferred_rows.to_vec() } else { Vec::new() };
    Ok(PythonSettings {
        python: options.python.clone(),
        class: options.class.clone(),
        inputs: specs(&options.inputs)?,
        outputs: specs(&options.outputs)?,
        trust: options.trust.unwrap_or(false),
        precision: options
            .precision
            .filter(|precision| *precision != Precision::Fp32)
            .map(|precision| precision.name().to_owned()),
        channels_last: options.nhwc.unwrap_or(false),
        compile: options.compile.unwrap_or(false),
        compiled_rows: rows_if(options.compile),
        graphs: rows_if(options.graphs),
        exhaustive: options.exhaustive.unwrap_or(false),
        pinned: on_gpu && !options.no_pinned.unwrap_or(false),
    })
}

fn spec(declared: &TensorDeclaration) -> Result<TensorSpec, SettingsError> {
    let size = |&size: &i64| match size {
        -1 => Ok(None),
        size => usize::try_from(size)
            .map(Some)
            .map_err(|_| SettingsError::TensorSize { name: declared.name.clone(), size }),
    };
    let shape = declared.shape.iter().map(size).collect::<Result<Vec<_>, _>>()?;
    Ok(TensorSpec::new(&*declared.name, dtype(declared.dtype), shape))
}

fn dtype(element: ElementType) -> DType {
    match element {
        ElementType::Bool => DType::Bool,
        ElementType::Uint8 => DType::U8,
        ElementType::Uint16 => DType::U16,
        ElementType::Uint32 => DType::U32,
        ElementType::Uint64 => DType::U64,
        ElementType::Int8 => DType::I8,
        ElementType::Int16 => DType::I16,
        ElementType::Int32 => DType::I32,
        ElementType::Int64 => DType::I64,
        ElementType::Float16 => DType::F16,
        ElementType::Bfloat16 => DType::BF16,
        ElementType::Float32 => DType::F32,
        ElementType::Float64 => DType::F64,
        ElementType::String => DType::String,
    }
}
