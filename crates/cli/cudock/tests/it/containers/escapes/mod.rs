//! Hostile images and programs: each test tries a known way out of a container for real, and shows that it leads nowhere.
//!
//! Beside every container lies a canary on this machine, which the attack would read or change if it worked. The attacks
//! are those of runc's advisories and of its kin; `docs/security.md` lists them with the tests below. Some of them also
//! need a C compiler; without one they are reported as skipped.

mod calls;
mod canary;
mod configs;
mod descriptors;
mod dev;
mod driver;
mod executable;
mod image;
mod kernel_files;
mod keyring;
mod links;
mod passwd;
mod races;
mod run;
mod terminals;
mod unpack;
