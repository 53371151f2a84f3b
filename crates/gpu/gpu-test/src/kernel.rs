//! The test computation: `out[i] = factor * in[i] + i`, with wrapping arithmetic.
//!
//! The kernel is PTX, so that one text works on every GPU and the driver's compiler is tested as well. It requires as little
//! as possible: PTX of CUDA 5.5, for GPUs of 2012. The compilers of CUDA 11.8, 12.9 and 13.4 accept it.

use std::ffi::CStr;

/// The number of elements: 4 MiB in, 4 MiB out, enough to occupy every multiprocessor.
pub(crate) const COUNT: u32 = 1 << 20;

/// Threads per block; divides [`COUNT`].
pub(crate) const BLOCK: u32 = 256;

/// Odd, with bits in every byte.
pub(crate) const FACTOR: u32 = 0x9E37_79B1;

/// The name of the kernel in [`PTX`].
pub(crate) const NAME: &CStr = c"cudock_multiply_add";

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

/// The input. It differs between devices, so that one cannot return another's result.
pub(crate) fn input(device: u32) -> Vec<u32> {
    (0..COUNT).map(|i| (i ^ device.rotate_right(8)).wrapping_mul(0x85EB_CA6B).rotate_left(13)).collect()
}

pub(crate) fn expected(input: &[u32]) -> Vec<u32> {
    (0..).zip(input).map(|(i, x): (u32, &u32)| x.wrapping_mul(FACTOR).wrapping_add(i)).collect()
}

/// The initial contents of the output: every element is wrong, so that an unwritten one is noticed even if the memory still
/// holds the result of an earlier run.
pub(crate) fn inverted(expected: &[u32]) -> Vec<u32> {
    expected.iter().map(|value| !value).collect()
}

/// The first wrong element, and the number of wrong elements.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    pub(crate) element: u32,
    pub(crate) expected: u32,
    pub(crate) found: u32,
    pub(crate) wrong: u32,
}

/// Compares all elements.
pub(crate) fn first_mismatch(expected: &[u32], found: &[u32]) -> Option<Mismatch> {
    let mut differing =
        (0..).zip(expected.iter().zip(found)).filter(|(_, (expected, found))| expected != found);
    let (element, (expected, found)) = differing.next()?;
    let others = u32::try_from(differing.count()).unwrap_or(u32::MAX);
    Some(Mismatch { element, expected: *expected, found: *found, wrong: others.saturating_add(1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_divides_the_count() {
        assert_eq!(COUNT % BLOCK, 0);
    }

    #[test]
    fn devices_get_different_input() {
        assert_ne!(input(0), input(1));
        let (zero, one) = (expected(&input(0)), expected(&input(1)));
        assert!(first_mismatch(&zero, &one).is_some_and(|first_mismatch| first_mismatch.wrong > COUNT / 2));
    }

    #[test]
    fn every_element_is_wrong_initially() {
        let expected = expected(&input(0));
        let first_mismatch = first_mismatch(&expected, &inverted(&expected));
        assert_eq!(first_mismatch.map(|first_mismatch| first_mismatch.wrong), Some(COUNT));
    }

    #[test]
    fn the_first_difference_is_reported_and_all_are_counted() {
        assert_eq!(first_mismatch(&[1, 2, 3, 4], &[1, 2, 3, 4]), None);
        assert_eq!(
            first_mismatch(&[1, 2, 3, 4], &[1, 7, 3, 8]),
            Some(Mismatch { element: 1, expected: 2, found: 7, wrong: 2 })
        );
    }
}
