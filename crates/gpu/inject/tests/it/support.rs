//! Finds the driver of a tree.

use cudock_host::Root;
use cudock_inject::{Driver, DriverRoots, InjectError};
use cudock_testkit::driver_tree::DriverTree;

/// The driver that is installed in a tree.
pub(crate) trait DriverOf {
    fn places(&self) -> DriverRoots;

    fn find(&self) -> Result<Driver, InjectError> {
        Driver::find(&self.places())
    }

    fn driver(&self) -> Driver {
        self.find().unwrap_or_else(|error| panic!("{error}"))
    }
}

impl DriverOf for DriverTree {
    fn places(&self) -> DriverRoots {
        DriverRoots::one(Root::tree(self.path()).unwrap())
    }
}
