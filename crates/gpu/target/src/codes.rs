//! The codes this crate can report. Each has a page that `cudock explain` prints.

cudock_facts::codes! {
    SIZE_RETIRED = "CD0801";
    VGPU_DRIVER = "CD0802";
}
