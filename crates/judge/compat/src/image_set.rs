//! The images of one subject: one for each processor that a target has, fetched only where the configuration of an image
//! does not decide its verdict.

use std::collections::BTreeMap;

use cudock_base::{Arch, Digest};
use cudock_facts::Facts;
use cudock_image::{Access, Image, ImageError, ImageSource, Platform, ResolvedImage};

use crate::evidence::Evidence;
use crate::gather::{GatherError, image, image_start};
use crate::judge::{Judgement, judge, judge_start};
use crate::target::Target;

/// Is called before an image is fetched and read, which may take minutes.
pub type OnRead<'a> = &'a dyn Fn(&Image);

/// The images of one subject that were opened so far.
pub struct ImageSet<'a> {
    /// The subject as the user named it.
    subject: &'a str,
    /// Variables that a container of it is started with.
    environment: &'a BTreeMap<String, String>,
    resolved: ResolvedImage,
    /// Whether the user chose the processor.
    is_chosen: bool,
    on_read: OnRead<'a>,
    images: Vec<Opened>,
}

struct Opened {
    image: Image,
    config: Evidence,
    /// The evidence in its layers, once they were read.
    whole: Option<Evidence>,
}

impl<'a> ImageSet<'a> {
    /// Opens the image for the requested processor, or for this machine's.
    pub fn open(
        source: &ImageSource,
        access: &Access,
        subject: &'a str,
        environment: &'a BTreeMap<String, String>,
        on_read: OnRead<'a>,
    ) -> Result<Self, ImageError> {
        Self::of(
            access.find_source(source.clone())?,
            access.platform.is_some(),
            subject,
            environment,
            on_read,
        )
    }

    /// The same for an image that was found already. `is_chosen`: the user chose the processor.
    pub fn of(
        resolved: ResolvedImage,
        is_chosen: bool,
        subject: &'a str,
        environment: &'a BTreeMap<String, String>,
        on_read: OnRead<'a>,
    ) -> Result<Self, ImageError> {
        let first = resolved.open()?;
        let mut set = Self { subject, environment, resolved, is_chosen, on_read, images: Vec::new() };
        set.add(first);
        Ok(set)
    }

    fn add(&mut self, image: Image) -> usize {
        let config = image_start(&image, self.subject, self.environment);
        self.images.push(Opened { image, config, whole: None });
        self.images.len() - 1
    }

    /// Judges the subject for each target. Nothing is fetched where every verdict follows from a configuration; what is
    /// fetched once answers for all targets. With `local_only`, a verdict that would need layers which are not on this
    /// machine is none instead of an error.
    pub fn judge(
        &mut self,
        targets: Vec<Target>,
        facts: &Facts,
        local_only: bool,
    ) -> Result<Vec<(Target, Option<Judgement>)>, GatherError> {
        // All images are opened first: which of them have to be fetched is only known then.
        let indexes = targets.iter().map(|target| self.index_for(target)).collect::<Result<Vec<_>, _>>()?;
        let mut answers = Vec::with_capacity(targets.len());
        for (index, target) in indexes.into_iter().zip(targets) {
            let Some(opened) = self.images.get(index) else {
                cudock_base::never!("image {index} of {} was not opened", self.images.len());
                continue;
            };
            let judgement = match judge_start(&opened.config, &target, facts) {
                Some(judgement) if opened.costs_fetching() => Some(judgement),
                _ if local_only && opened.image.bytes_to_fetch() > 0 => None,
                _ => self.evidence(index, facts)?.map(|evidence| judge(evidence, &target, facts)),
            };
            answers.push((target, judgement));
        }
        Ok(answers)
    }

    /// Which of the images is for a target's processor. It is opened if there is one that is not open yet; the first one
    /// stands in if there is none.
    fn index_for(&mut self, target: &Target) -> Result<usize, ImageError> {
        let Some(wanted) = target.traits.cpu else { return Ok(0) };
        let matches = |platform: &Platform| Arch::parse(&platform.architecture) == Some(wanted);
        if let Some(index) = self.images.iter().position(|opened| matches(&opened.image.platform)) {
            return Ok(index);
        }
        let known = self.images.first().map_or(&[][..], |first| &first.image.platforms);
        let other = known.iter().find(|platform| platform.os == "linux" && matches(platform)).cloned();
        match other.filter(|_| !self.is_chosen) {
            None => Ok(0),
            platform => {
                let image = self.resolved.open_for(platform.as_ref())?;
                Ok(self.add(image))
            }
        }
    }

    /// The evidence in an image, which is fetched and read if it was not before.
    fn evidence(&mut self, index: usize, facts: &Facts) -> Result<Option<&Evidence>, GatherError> {
        let Some(opened) = self.images.get_mut(index) else { return Ok(None) };
        if opened.whole.is_none() {
            (self.on_read)(&opened.image);
            opened.whole = Some(image(&opened.image, self.subject, self.environment, facts)?);
        }
        Ok(opened.whole.as_ref())
    }

    /// The digest of the image's manifest or index; archives of docker have none.
    pub fn digest(&self) -> Option<Digest> {
        self.resolved.known_digest()
    }

    /// The image that was opened first, and whether its layers would have to be fetched to look into it.
    pub fn first(&self) -> Option<(&Image, bool)> {
        self.images.first().map(|opened| (&opened.image, opened.costs_fetching()))
    }

    pub fn into_evidence(self) -> Option<Evidence> {
        self.images.into_iter().find_map(|opened| opened.whole)
    }
}

impl Opened {
    fn costs_fetching(&self) -> bool {
        let is_remote = matches!(self.image.source, Some(ImageSource::Registry(_)));
        self.whole.is_none() && is_remote && self.image.bytes_to_fetch() > 0
    }
}
