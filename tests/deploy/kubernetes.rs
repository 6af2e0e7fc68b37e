//! deploy/kubernetes: each container runs with its settings, and each probe, selector and reference finds what it names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use overdue_tests::terminal::Running;
use overdue_tests::{Redis, eventually_blocking, http, redis};
use serde_json::{Value, json};

use crate::container::Container;
use crate::image::Image;
use crate::place::Place;
use crate::yaml::{documents, read, string, strings};

const FILE: &str = "deploy/kubernetes/overdue.yml";

/// All objects of a kind.
pub(super) fn of_kind(kind: &str) -> Vec<Value> {
    let found: Vec<_> = documents(FILE).into_iter().filter(|object| object["kind"] == kind).collect();
    assert!(!found.is_empty(), "no {kind}");
    found
}

/// What each Deployment runs.
pub(super) fn pods() -> Vec<Value> {
    of_kind("Deployment").iter().map(|deployment| deployment["spec"]["template"]["spec"].clone()).collect()
}

/// The files of a volume, written below `place`.
fn volume(pod: &Value, name: &Value, place: &Place) -> PathBuf {
    let volumes = pod["volumes"].as_array().unwrap();
    let volume = volumes.iter().find(|volume| volume["name"] == *name).unwrap_or_else(|| panic!("no {name}"));
    let folder = place.folder().join(string(name));
    fs::create_dir_all(&folder).unwrap();
    if let Some(wanted) = volume["configMap"]["name"].as_str() {
        let maps = of_kind("ConfigMap");
        let map = maps
            .iter()
            .find(|map| map["metadata"]["name"] == wanted)
            .unwrap_or_else(|| panic!("no {wanted}"));
        for (file, text) in map["data"].as_object().unwrap() {
            fs::write(folder.join(file), string(text)).unwrap();
        }
    } else {
        // As the head of the file says it is made.
        assert_eq!(volume["secret"]["secretName"], "overdue-redis");
        fs::write(folder.join("password"), "a secret\n").unwrap();
    }
    folder
}

/// The first container of a pod.
fn container(pod: &Value, place: &Place) -> Container {
    let it = &pod["containers"][0];
    let command = Image::read().entrypoint.into_iter().chain(strings(&it["args"])).collect();
    let mounts = it["volumeMounts"].as_array().unwrap().iter();
    let mut mounts: Vec<_> = mounts
        .map(|mount| (string(&mount["mountPath"]).to_owned(), volume(pod, &mount["name"], place)))
        .collect();
    // What the settings name lies in another volume.
    let (settings, password) = (mounts[0].1.join("overdue.toml"), &mounts[1]);
    let text = fs::read_to_string(&settings).unwrap();
    assert!(text.contains(&password.0));
    fs::write(&settings, text.replace(&password.0, &password.1.display().to_string())).unwrap();
    mounts.truncate(1);
    Container { command, env: BTreeMap::new(), mounts }
}

fn started(pod: &Value, place: &mut Place) {
    let it = &pod["containers"][0];
    let port = &it["ports"][0];
    let addr = place.listen(u16::try_from(port["containerPort"].as_u64().unwrap()).unwrap());
    let mut process: Running = container(pod, place).start(place);
    for probe in ["livenessProbe", "readinessProbe"] {
        let get = &it[probe]["httpGet"];
        assert_eq!(get["port"], port["name"], "{probe}");
        eventually_blocking(probe, || {
            process.assert_runs();
            match http::get(addr, string(&get["path"])) {
                Ok(response) if response.status == 200 => Ok(()),
                other => Err((other, process.output())),
            }
        });
    }
    assert!(it["livenessProbe"]["httpGet"]["path"] != it["readinessProbe"]["httpGet"]["path"]);
    process.sigterm();
    assert_eq!(process.code(), 0, "{}", process.output());
}

#[test]
fn each_container_runs_with_its_settings_and_answers_its_probes() {
    let options = redis::Options { password: Some("a secret".into()), ..redis::Options::default() };
    let redis = Redis::with(options);
    let mut place = Place::at(&redis);
    let pods = pods();
    assert_eq!(pods.len(), 2);
    for pod in &pods {
        started(pod, &mut place);
    }
}

#[test]
fn selectors_find_their_pods_and_no_others() {
    let labels: Vec<_> =
        of_kind("Deployment").iter().map(|it| it["spec"]["template"]["metadata"]["labels"].clone()).collect();
    let all: BTreeSet<_> = labels.iter().map(ToString::to_string).collect();
    assert_eq!(all.len(), labels.len());
    let selectors = |kind: &str| {
        of_kind(kind).iter().map(|it| it["spec"]["selector"]["matchLabels"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(selectors("Deployment"), labels);
    assert_eq!(selectors("PodDisruptionBudget"), labels);
    let scaled = of_kind("HorizontalPodAutoscaler").remove(0)["spec"]["scaleTargetRef"]["name"].clone();
    let deployments = of_kind("Deployment");
    let scaled = deployments.iter().find(|it| it["metadata"]["name"] == scaled).unwrap();
    // Else each apply would undo what the autoscaler did.
    assert_eq!(scaled["spec"]["replicas"], Value::Null);

    let monitor = read("deploy/kubernetes/pod-monitor.yml")["spec"].clone();
    let wanted = monitor["selector"]["matchLabels"].as_object().unwrap();
    assert!(labels.iter().all(|labels| wanted.iter().all(|(name, value)| labels[name] == *value)));
    let endpoint = &monitor["podMetricsEndpoints"][0];
    assert!(pods().iter().all(|pod| pod["containers"][0]["ports"][0]["name"] == endpoint["port"]));
    assert_eq!(endpoint["honorLabels"], true);
}

#[test]
fn pods_have_time_to_end_and_few_rights() {
    for pod in pods() {
        assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() >= 40);
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        let rights = &pod["containers"][0]["securityContext"];
        assert_eq!(rights["allowPrivilegeEscalation"], false);
        assert_eq!(rights["readOnlyRootFilesystem"], true);
        assert_eq!(rights["capabilities"]["drop"], json!(["ALL"]));
    }
}
