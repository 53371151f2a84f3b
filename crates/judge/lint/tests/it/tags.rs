//! Near misses and further cases of the rules about image references.

use cudock_facts::Facts;
use cudock_facts::finding::Severity;

use crate::examples::findings;

/// The codes of the findings that begin with one of these prefixes.
fn codes(text: &str) -> Vec<&'static str> {
    let facts = Facts::embedded();
    let own = ["CD0601", "CD061", "CD070"];
    let found = findings(&facts, text);
    found
        .iter()
        .map(|finding| finding.code)
        .filter(|code| own.iter().any(|prefix| code.starts_with(prefix)))
        .collect()
}

#[test]
fn references_are_judged_by_what_the_registry_has() {
    let cases: &[(&str, &[&str])] = &[
        ("FROM nvidia/cuda\n", &["CD0613"]),
        ("FROM nvidia/cuda:latest\n", &["CD0613"]),
        ("FROM docker.io/nvidia/cuda:latest\n", &["CD0613"]),
        ("FROM nvcr.io/nvidia/cuda:12.4.1-cudnn8-devel-ubuntu22.04\n", &["CD0613"]),
        ("FROM nvidia/cuda:12.4-base-ubuntu22.04\n", &["CD0613"]),
        ("FROM nvidia/cuda:12.4.1-base\n", &["CD0613"]),
        ("FROM nvidia/cuda:10.2-base-ubuntu18.04\n", &["CD0613"]),
        ("FROM nvidia/cuda:11.7.0-base-ubuntu20.04\n", &["CD0613"]),
        ("FROM nvidia/cuda-arm64:11.4.0-base-ubuntu20.04\n", &["CD0613"]),
        ("FROM nvidia/cuda-arm64\n", &["CD0613"]),
        ("ARG TAG=12.4.1-cudnn8-devel-ubuntu22.04\nFROM nvidia/cuda:${TAG}\n", &["CD0613"]),
        ("FROM nvidia/cuda:99.0.0-base-ubuntu30.04\n", &[]),
        ("FROM nvidia/cuda:13.4.1-base-ubuntu24.04\n", &[]),
        ("FROM mirror.example/nvidia/cuda:latest\n", &["CD0703"]),
        ("FROM nvidia/cuda:12.4.1-base-ubuntu22.04 AS latest\nFROM latest\n", &[]),
        ("FROM scratch\n", &[]),
        ("FROM ubuntu\n", &["CD0702"]),
        ("FROM deps\n", &[]),
        ("ARG CUDA=notset\nFROM nvidia/cuda:${CUDA}-base-ubuntu22.04\n", &[]),
        ("FROM registry:5000/team/image\n", &["CD0702"]),
        ("FROM registry:5000/team/image:1\n", &[]),
        ("FROM ubuntu:latest@sha256:0123\n", &[]),
        ("FROM somebody/tool@sha256:0123\n", &[]),
        ("FROM nvidia/cuda:latest@sha256:0123\n", &[]),
        ("FROM nvidia/cuda:12.6.0-base-ubuntu22.04\n", &["CD0614"]),
    ];
    for (text, expected) in cases {
        assert_eq!(codes(text), *expected, "{text}");
    }
}

#[test]
fn the_tag_to_write_instead_is_the_next_supported_one() {
    let facts = Facts::embedded();
    let cases = [
        ("11.4.2-devel-ubuntu20.04", "11.4.3-devel-ubuntu20.04"),
        ("11.6.0-base-ubuntu20.04", "11.6.2-base-ubuntu20.04"),
        ("10.2-cudnn7-runtime-ubuntu18.04", "11.4.3-cudnn8-runtime-ubuntu18.04"),
        ("12.4-cudnn-devel-ubuntu22.04", "12.4.1-cudnn-devel-ubuntu22.04"),
        ("12.4.1-runtme-ubuntu22.04", "12.4.1-runtime-ubuntu22.04"),
    ];
    for (written, expected) in cases {
        let found = findings(&facts, &format!("FROM nvidia/cuda:{written}\n"));
        let finding = found.iter().find(|finding| finding.code == "CD0613").unwrap();
        assert_eq!(finding.fix, format!("use nvidia/cuda:{expected}"));
    }
}

#[test]
fn distributions_are_judged_on_the_day_of_the_tables() {
    let cases: &[(&str, &[&str])] = &[
        ("FROM debian:buster\n", &["CD0704"]),
        ("FROM python:3.8-slim-buster\n", &["CD0704"]),
        ("FROM centos:7\n", &["CD0704"]),
        ("FROM debian:12\n", &[]),
        ("FROM python:3.12-slim-bookworm\n", &[]),
        ("FROM ubuntu:22.04\n", &[]),
        ("FROM somebody/ubuntu:18.04\n", &[]),
    ];
    for (text, expected) in cases {
        assert_eq!(codes(text), *expected, "{text}");
    }
}

#[test]
fn packages_that_left_the_mirrors_are_named_where_some_are_installed() {
    let facts = Facts::embedded();
    let message = |text: &str| findings(&facts, text).remove(0).message;
    assert!(message("FROM debian:10\nRUN apt-get update\n").contains("archive.debian.org"));
    assert!(!message("FROM debian:10\nCOPY a b\n").contains("archive.debian.org"));
    let fixed = "FROM debian:10\nRUN sed -i s/deb.debian/archive.debian.org/ /etc/apt/sources.list && apt-get update\n";
    assert!(!message(fixed).contains("installing any fails"));
}

#[test]
fn arguments_of_from_are_those_before_the_first_one() {
    let cases: &[(&str, &[&str])] = &[
        ("FROM $IMAGE\n", &["CD0706"]),
        ("FROM a:1\nARG TAG=1\nFROM b:$TAG\n", &["CD0706"]),
        ("ARG IMAGE\nFROM $IMAGE\n", &["CD0707"]),
        ("ARG IMAGE\nFROM ${IMAGE:-ubuntu:22.04}\n", &[]),
        ("FROM --platform=$BUILDPLATFORM ubuntu:22.04\n", &[]),
        ("FROM base-$TARGETARCH\n", &[]),
    ];
    for (text, expected) in cases {
        assert_eq!(codes(text), *expected, "{text}");
    }
}

#[test]
fn platforms_are_compared_with_the_target_and_with_what_exists() {
    let cases: &[(&str, &[&str])] = &[
        ("# for: GH200\nFROM --platform=linux/amd64 ubuntu:22.04 AS base\nFROM base\n", &["CD0601"]),
        ("# for: GH200\nFROM --platform=$BUILDPLATFORM ubuntu:22.04\n", &[]),
        ("# for: cpu\nFROM --platform=linux/amd64 ubuntu:22.04\n", &[]),
        ("# for: GH200\nFROM --platform=linux/amd64 ubuntu:22.04 AS tools\nFROM ubuntu:22.04\n", &[]),
        ("FROM --platform=linux/ppc64le nvidia/cuda:12.4.1-base-ubuntu22.04\n", &[]),
        ("FROM --platform=linux/arm/v7 nvidia/cuda:12.4.1-base-ubuntu22.04\n", &["CD0708"]),
        ("FROM --platform=linux/arm/v7 ubuntu:22.04\n", &[]),
    ];
    for (text, expected) in cases {
        assert_eq!(codes(text), *expected, "{text}");
    }
}

#[test]
fn only_the_same_image_under_its_right_name_is_an_edit() {
    let facts = Facts::embedded();
    let edit = |text: &str| {
        let finding = findings(&facts, text).into_iter().find(|finding| finding.severity == Severity::Error);
        finding.and_then(|finding| Some(finding.suggestions.first()?.edits.first()?.text.clone()))
    };
    let cases = [
        ("FROM nvidia/cuda:12.4-base-ubuntu22.04\n", Some("12.4.1-base-ubuntu22.04")),
        ("FROM nvidia/cuda:12.4.1-cudnn9-devel-ubuntu22.04\n", Some("12.4.1-cudnn-devel-ubuntu22.04")),
        ("FROM nvidia/cuda:11.7.0-base-ubuntu22.04\n", Some("11.7.1-base-ubuntu22.04")),
        ("FROM nvidia/cuda:latest\n", None),
        ("FROM nvidia/cuda:12.4.1-base\n", None),
        ("FROM nvidia/cuda:10.2-base-ubuntu18.04\n", None),
        ("ARG V=12.4\nFROM nvidia/cuda:${V}-base-ubuntu22.04\n", None),
    ];
    for (text, expected) in cases {
        assert_eq!(edit(text).as_deref(), expected, "{text}");
    }
}
