// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .treatAllWarnings(as: .error),
]

/// What everything outside the tests is built with. (The macros of Swift Testing trip over strict memory safety.)
let strict = settings + [.strictMemorySafety()]

/// A library of ours under `Sources/`, with its tests in `Tests/<name>Tests`.
func library(
    _ name: String,
    path: String? = nil,
    _ dependencies: [Target.Dependency],
    testedWith testDependencies: [Target.Dependency] = []
) -> [Target] {
    [
        .target(name: name, dependencies: dependencies, path: path, swiftSettings: strict),
        .testTarget(
            name: "\(name)Tests",
            dependencies: [.byName(name: name)] + dependencies + testDependencies,
            swiftSettings: settings
        ),
    ]
}

let values: [Target] =
    library("MediaCore", [])
    + library("Threading", ["MediaCore"])

let decisions: [Target] = []

let edges: [Target] =
    [
        // Debian's libyuv has no pkg-config file; the module map links it.
        .systemLibrary(name: "CYUV", providers: [.apt(["libyuv-dev"])]),
        .systemLibrary(name: "CTurboJPEG", pkgConfig: "libturbojpeg", providers: [.apt(["libturbojpeg0-dev"])]),
    ]
    + library("VideoProcessing", ["MediaCore", "Threading", "CYUV", "CTurboJPEG"])
    + library("SyntheticSources", ["MediaCore", "Threading"])

let assembly: [Target] = []

let programs: [Target] = []

let package = Package(
    name: "room",
    products: [
        .library(name: "MediaCore", targets: ["MediaCore"])
    ],
    targets: values + decisions + edges + assembly + programs
)
