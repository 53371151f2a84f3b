//! Over which axes a node reduces: engines have fast kernels for the first and the last ones.

use cudock_base::protobuf::{FieldValue, Fields, WireValue};

/// Whether a node is a reduction over axes that are not known to be the first or the last ones: in between, counted from
/// the other end, or computed.
pub(super) fn is_inner(operator: &[u8], node: &[u8]) -> Result<bool, String> {
    let is_index = matches!(operator, b"ArgMax" | b"ArgMin");
    if !is_index && !operator.starts_with(b"Reduce") {
        return Ok(false);
    }
    let mut inputs = 0;
    let mut axes = Vec::new();
    for field in Fields::new(node) {
        match field? {
            (1, input) => inputs += usize::from(!input.bytes()?.is_empty()),
            (5, attribute) => add_axes(attribute.bytes()?, &mut axes)?,
            _ => {}
        }
    }
    if is_index {
        // Without the attribute, it is the first axis, for which there is no kernel.
        return Ok(axes != [-1]);
    }
    axes.sort_unstable();
    let count = i64::try_from(axes.len()).map_err(|error| error.to_string())?;
    let is_first = axes.iter().copied().eq(0..count);
    let is_last = axes.iter().copied().eq(-count..0);
    Ok(inputs > 1 || !is_first && !is_last)
}

/// Adds the numbers of the attribute `axis` or `axes`.
fn add_axes(attribute: &[u8], axes: &mut Vec<i64>) -> Result<(), String> {
    let mut name: &[u8] = &[];
    let mut numbers = Vec::new();
    for field in Fields::new(attribute) {
        match field? {
            (1, text) => name = text.bytes()?,
            (3, FieldValue { wire: WireValue::Varint(number), .. }) => numbers.push(number.cast_signed()),
            (8, list) => list.numbers(|number| {
                numbers.push(number.cast_signed());
                Ok::<_, String>(())
            })?,
            _ => {}
        }
    }
    if matches!(name, b"axis" | b"axes") {
        axes.extend(numbers);
    }
    Ok(())
}
