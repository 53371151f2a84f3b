//! The work that a GPU is given: `out[i] = factor * in[i] + i`, without regard to overflow.
//!
//! The kernel is PTX, so that one text serves every GPU and the driver's compiler is tried as well. It asks for as
//! little as can be: PTX of CUDA 5.5, for cards of 2012. The compilers of CUDA 11.8, 12.9 and 13.4 take it.

use std::ffi::CStr;

/// How many numbers are computed: 4 MiB in, 4 MiB out, enough to occupy every multiprocessor there is.
pub(crate) const COUNT: u32 = 1 << 20;

/// How many threads a block has; it divides [`COUNT`].
pub(crate) const BLOCK: u32 = 256;

/// Odd, and with bits in every byte.
pub(crate) const FACTOR: u32 = 0x9E37_79B1;

/// The kernel's name in [`PTX`].
pub(crate) const NAME: &CStr = c"cudock_multiply_add";

/// The kernel.
pub(crate) const PTX: &CStr = cr"
.version 3.2
.target sm_30
.address_size 64

.visible .entry cudock_multiply_add(
    .param .u64 out,
    .param .u64 in,
    .param .u32 factor,
    .param .u32 count
)
{
    .reg .pred %beyond;
    .reg .b32 %block, %threads, %thread, %i, %n, %f, %x, %y;
    .reg .b64 %from, %to, %offset;

    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %thread, %tid.x;
    mad.lo.u32 %i, %block, %threads, %thread;
    ld.param.u32 %n, [count];
    setp.ge.u32 %beyond, %i, %n;
    @%beyond bra DONE;

    mul.wide.u32 %offset, %i, 4;
    ld.param.u64 %from, [in];
    cvta.to.global.u64 %from, %from;
    add.u64 %from, %from, %offset;
    ld.param.u64 %to, [out];
    cvta.to.global.u64 %to, %to;
    add.u64 %to, %to, %offset;

    ld.global.u32 %x, [%from];
    ld.param.u32 %f, [factor];
    mad.lo.u32 %y, %x, %f, %i;
    st.global.u32 [%to], %y;
DONE:
    ret;
}
";

/// The numbers that go in. They differ between devices, so that one cannot answer with another's result.
pub(crate) fn input(device: u32) -> Vec<u32> {
    (0..COUNT).map(|i| (i ^ device.rotate_right(8)).wrapping_mul(0x85EB_CA6B).rotate_left(13)).collect()
}

/// The numbers that must come out.
pub(crate) fn expected(input: &[u32]) -> Vec<u32> {
    (0..).zip(input).map(|(i, x): (u32, &u32)| x.wrapping_mul(FACTOR).wrapping_add(i)).collect()
}

/// What the output is filled with beforehand: wrong in every element, so that one never written is noticed even in
/// memory that still holds the result of an earlier run.
pub(crate) fn all_wrong(expected: &[u32]) -> Vec<u32> {
    expected.iter().map(|value| !value).collect()
}

/// The first element that is not as expected, and how many are not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) element: u32,
    pub(crate) expected: u32,
    pub(crate) found: u32,
    pub(crate) wrong: u32,
}

/// Holds every element against what is expected.
pub(crate) fn difference(expected: &[u32], found: &[u32]) -> Option<Difference> {
    let mut differing =
        (0..).zip(expected.iter().zip(found)).filter(|(_, (expected, found))| expected != found);
    let (element, (expected, found)) = differing.next()?;
    let others = u32::try_from(differing.count()).unwrap_or(u32::MAX);
    Some(Difference { element, expected: *expected, found: *found, wrong: others.saturating_add(1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_divides_the_count() {
        assert_eq!(COUNT % BLOCK, 0);
    }

    #[test]
    fn devices_get_different_numbers() {
        assert_ne!(input(0), input(1));
        let (zero, one) = (expected(&input(0)), expected(&input(1)));
        assert!(difference(&zero, &one).is_some_and(|difference| difference.wrong > COUNT / 2));
    }

    #[test]
    fn every_element_is_wrong_beforehand() {
        let expected = expected(&input(0));
        let difference = difference(&expected, &all_wrong(&expected));
        assert_eq!(difference.map(|difference| difference.wrong), Some(COUNT));
    }

    #[test]
    fn the_first_difference_is_told_and_all_are_counted() {
        assert_eq!(difference(&[1, 2, 3, 4], &[1, 2, 3, 4]), None);
        assert_eq!(
            difference(&[1, 2, 3, 4], &[1, 7, 3, 8]),
            Some(Difference { element: 1, expected: 2, found: 7, wrong: 2 })
        );
    }
}
