//! The finding codes of this crate that are not in the table of rules.

cudock_facts::codes! {
    /// The file is not a Dockerfile.
    SYNTAX = "CD0700";
}
