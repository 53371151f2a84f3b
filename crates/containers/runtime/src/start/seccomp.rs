//! The system-call filter of a container.

use cudock_confine::Capability;
use cudock_confine::seccomp::{Filter, FilterContext, Profile};

use crate::container::config::{Seccomp, Security};
use crate::error::{RuntimeError, error_text};

pub(crate) fn filter(security: &Security) -> Result<Option<Filter>, RuntimeError> {
    let capabilities: Result<Vec<Capability>, _> =
        security.capabilities.iter().map(|name| Capability::from_name(name)).collect();
    let capabilities = capabilities?;
    match &security.seccomp {
        Seccomp::Unconfined => Ok(None),
        Seccomp::Default => Ok(Some(Filter::for_capabilities(&capabilities)?)),
        Seccomp::Profile(text) => {
            let profile = Profile::from_json(text.as_bytes())?;
            Ok(Some(Filter::new(&profile, &FilterContext::here(&capabilities))?))
        }
    }
}

/// Checks that the seccomp filter can be compiled and installed.
pub fn check_seccomp(security: &Security) -> Result<(), RuntimeError> {
    if !security.no_new_privileges && security.seccomp != Seccomp::Unconfined {
        // The kernel accepts a filter only with no-new-privileges or CAP_SYS_ADMIN, which is dropped before the program
        // starts.
        let text = "a seccomp filter needs no-new-privileges: add --security-opt seccomp=unconfined";
        return Err(RuntimeError::Request(text.to_owned()));
    }
    match filter(security) {
        Ok(_) => Ok(()),
        Err(error) => Err(RuntimeError::Request(error_text(&error))),
    }
}
