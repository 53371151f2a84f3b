//! The JSON around the outputs of a response.

/// The JSON form of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseForm {
    /// `{"prediction": …, "device": …}`
    #[default]
    Prediction,
    /// `{"predictions": […]}`, where several outputs are an object for each row.
    Rows,
    /// `{"outputs": …}`, where several outputs are one object.
    Columns,
    /// The outputs and nothing around them.
    Bare,
}
