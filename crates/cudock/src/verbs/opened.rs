//! Images of a subject: one for each processor that is asked about, fetched only where its configuration does not decide.

use std::collections::BTreeMap;
use std::io::IsTerminal;

use cudock_compat::evidence::Evidence;
use cudock_compat::{Judgement, Target, image, image_start, judge_start};
use cudock_facts::Facts;
use cudock_image::{Image, ImageSource, OpenOptions, Origin, Platform, open};

use crate::failure::Failure;
use crate::output::megabytes;
use crate::verbs::containers::{Wish, in_daemon, open_options};

/// Compressed layers of this size take seconds.
const LONG: u64 = 500_000_000;

/// The images of one subject that were opened so far.
pub(crate) struct OpenedImages<'a> {
    /// What the user calls it.
    subject: &'a str,
    /// Variables that a container of it is started with.
    environment: &'a BTreeMap<String, String>,
    source: ImageSource,
    options: OpenOptions,
    /// Whether the user chose the processor.
    is_chosen: bool,
    images: Vec<Opened>,
}

/// An image for one processor.
pub(crate) struct Opened {
    pub(crate) image: Image,
    config: Evidence,
    /// All that is in it, once it was looked at.
    pub(crate) whole: Option<Evidence>,
}

impl<'a> OpenedImages<'a> {
    pub(crate) fn open(
        source: &ImageSource,
        wish: &Wish,
        subject: &'a str,
        environment: &'a BTreeMap<String, String>,
    ) -> Result<Self, Failure> {
        let options = open_options(source, wish)?;
        let source = in_daemon(source.clone(), &options);
        let is_chosen = wish.platform.is_some();
        let mut opened = Self { subject, environment, source, options, is_chosen, images: Vec::new() };
        opened.add()?;
        Ok(opened)
    }

    fn add(&mut self) -> Result<usize, Failure> {
        let image = open(&self.source, &self.options)?;
        let config = image_start(&image, self.subject, self.environment);
        self.images.push(Opened { image, config, whole: None });
        Ok(self.images.len() - 1)
    }

    /// Which of the images is for a target's processor. It is opened where there is one that is not yet; the first has
    /// to do where there is none.
    pub(crate) fn for_target(&mut self, target: &Target) -> Result<usize, Failure> {
        let Some(wanted) = target.traits.cpu.as_deref() else { return Ok(0) };
        let is_it = |platform: &Platform| platform.architecture == wanted;
        if let Some(index) = self.images.iter().position(|opened| is_it(&opened.image.platform)) {
            return Ok(index);
        }
        let known = self.images.first().map_or(&[][..], |first| &first.image.platforms);
        let other = known.iter().find(|platform| platform.os == "linux" && is_it(platform)).cloned();
        match other.filter(|_| !self.is_chosen) {
            None => Ok(0),
            platform => {
                self.options.platform = platform;
                self.add()
            }
        }
    }

    pub(crate) fn first(&self) -> Option<&Opened> {
        self.images.first()
    }

    pub(crate) fn at(&self, index: usize) -> Option<&Opened> {
        self.images.get(index)
    }

    /// All that is in an image, which is fetched and read if it was not before.
    pub(crate) fn evidence(&mut self, index: usize, facts: &Facts) -> Result<Option<&Evidence>, Failure> {
        let Some(opened) = self.images.get_mut(index) else { return Ok(None) };
        if opened.whole.is_none() {
            let bytes = opened.image.bytes_to_fetch();
            if bytes > 0 {
                anstream::eprintln!("fetching {} of {}", megabytes(bytes), opened.image.name);
            }
            let stored: u64 = opened.image.layers.iter().map(|layer| layer.size).sum();
            if stored > LONG && std::io::stderr().is_terminal() {
                anstream::eprintln!("reading {} in {} layers", megabytes(stored), opened.image.layers.len());
            }
            opened.whole = Some(image(&opened.image, self.subject, self.environment, facts)?);
        }
        Ok(opened.whole.as_ref())
    }

    pub(crate) fn into_images(self) -> Vec<Opened> {
        self.images
    }
}

impl Opened {
    /// The verdict, where the configuration alone decides it.
    pub(crate) fn start(&self, target: &Target, facts: &Facts) -> Option<Judgement> {
        judge_start(&self.config, target, facts)
    }

    /// Whether looking into it means fetching it from a registry.
    pub(crate) fn costs_fetching(&self) -> bool {
        self.whole.is_none() && self.image.origin == Origin::Registry && self.image.bytes_to_fetch() > 0
    }
}
