//! The translation to each service, and the reading of their answers, against Azure's own schemas and recordings.

mod bodies;
mod dry_run;
mod export;
mod refusals;
mod schema;
mod source;
mod specs;
mod status;
