//! A model of the repository, whether it was loaded or not.

use std::sync::Arc;

use crate::model::{Model, ModelFile};

/// One version of a model that is served.
#[derive(Clone)]
pub(crate) enum ServedModel {
    /// It was never loaded.
    New(Arc<ModelFile>),
    /// Its engines may have been unloaded since.
    Known(Arc<Model>),
}

impl ServedModel {
    pub(crate) fn file(&self) -> &ModelFile {
        match self {
            Self::New(file) => file,
            Self::Known(model) => &model.file,
        }
    }

    pub(crate) fn known(&self) -> Option<&Arc<Model>> {
        match self {
            Self::New(_) => None,
            Self::Known(model) => Some(model),
        }
    }

    pub(crate) fn has_engine(&self) -> bool {
        self.known().is_some_and(|model| model.is_ready())
    }

    /// Whether its engines are loaded; one that is lost is replaced.
    pub(crate) fn is_resident(&self) -> bool {
        self.known().is_some_and(|model| model.is_resident())
    }
}
