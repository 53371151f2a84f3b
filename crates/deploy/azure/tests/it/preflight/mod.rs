//! Preflight: the queries, and how the answers are judged.

mod account;
mod any_answer;
mod choice;
mod offers;
mod queries;
mod quotas;
mod recordings;
mod registry;
mod support;
