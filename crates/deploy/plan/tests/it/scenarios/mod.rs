//! The scenarios people come with, one a file: counted by hand on a fixed catalog, and looked at once more
//! on the tables the program carries, where only what prices cannot change is asserted.
//!
//! All of them start an image of 4 GB, 10 GB unpacked, that is ready 30 s after its start. Of that, as the
//! fixed tables have it, in seconds:
//!
//! | | machine | fetch | unpack | ready | start | paid for |
//! | --- | --- | --- | --- | --- | --- | --- |
//! | Virtual Machine | 160 | 4000/150 = 26.667 | 10000/100 = 100 | 30 | 316.667 | 156.667 |
//! | Batch | 330 | 26.667 | 100 | 30 | 486.667 | 156.667 |
//! | Machine Learning | 360 | 26.667 | 100 | 30 | 516.667 | 156.667 |
//! | Container Apps | 40 | 4000/200 = 20 | 10000/1000 = 10 | 30 | 100 | 60 |
//!
//! Machines are billed by whole minutes, the rest of a minute is not counted; it is taken off the work. A
//! disk (P10) costs 21.68 a month of 730 h = 2,628,000 s, from the order on; Machine Learning and Container
//! Apps ask for none. Money is rounded up to a billionth once for all time of machines: work first, and each
//! other part is what it adds to the ones before.

mod batch_job;
mod data_bound;
mod inference;
mod llm_training;
mod rendering;
mod spot;
mod sweep;
mod volta;
