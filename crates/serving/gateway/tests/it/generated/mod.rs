//! Random headers, answers and uploads. CI runs few cases, `scripts/gateway-check` many.

mod answers;
mod headers;
mod uploads;
