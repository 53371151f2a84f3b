//! The attacks by what they use, and what they share.

mod calls;
mod canary;
mod configs;
mod descriptors;
mod dev;
mod driver;
mod executable;
mod image;
mod kernel_files;
mod links;
mod passwd;
mod races;
mod run;
mod terminals;
mod unpack;
