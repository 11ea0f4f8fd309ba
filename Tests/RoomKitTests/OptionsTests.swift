import MediaCore
import Testing
import Threading

@testable import RoomKit

/// A capturer that says nothing of itself.
private final class IdleCapturer: CustomCapturer {
    func initCapture() {}
    func startCapture(_ consumer: VideoCaptureConsumer) {}
    func stopCapture() {}
    func releaseCapture() {}
}

@Suite("Options", .timeLimit(.minutes(1)))
struct OptionsTests {
    @Test("An identity is this machine's name with four random characters")
    func identity() {
        let identities = Set((0..<20).map { _ in ConnectOptions.makeIdentity() })
        #expect(identities.count > 15)
        for identity in identities {
            #expect(identity.wholeMatch(of: /.+-[a-z0-9]{4}/) != nil, "\(identity)")
            #expect(identity.utf8.count <= 128)
        }
        #expect(Set(identities.map { $0.dropLast(4) }).count == 1)
    }

    @Test("Options are built as in other SDKs")
    func building() {
        let track = LocalVideoTrack(source: HandSource())
        let options = ConnectOptions(token: "secret") { builder in
            builder.roomName = "lab"
            builder.videoTracks = [track]
        }
        #expect(options.accessToken == "secret" && options.roomName == "lab")
        #expect(options.videoTracks.count == 1 && options.isAutomaticSubscriptionEnabled)
        #expect(ConnectOptions(roomName: "lab").accessToken == nil)
    }

    private func plans(_ width: Int, _ height: Int, simulcast: Bool? = nil, processors: Int = 2) -> [EncodingPlan] {
        var options = VideoPublishOptions()
        options.simulcast = simulcast
        return options.plans(for: Dimensions(width: width, height: height), processors: processors)
    }

    @Test(
        "Large pictures are sent in two or three sizes, numbered from the smallest, unless the option says otherwise",
        arguments: [
            (1920, 1080, Bool?.none, [4, 2, 1]), (1280, 720, nil, [4, 2, 1]), (960, 540, nil, [4, 2, 1]),
            (640, 480, nil, [2, 1]), (720, 1280, nil, [4, 2, 1]), (640, 360, nil, [1]), (320, 240, nil, [1]),
            (1280, 720, false, [1]), (640, 360, true, [2, 1]), (160, 120, true, [1]), (1, 1, true, [1]),
        ]
    )
    func simulcast(width: Int, height: Int, simulcast: Bool?, divisors: [Int]) {
        let plans = plans(width, height, simulcast: simulcast)
        #expect(plans.map(\.divisor) == divisors)
        #expect(plans.map(\.simulcastLayer) == Array(divisors.indices))
        for plan in plans {
            let size = Dimensions(width: width, height: height).divided(by: plan.divisor)
            #expect(size.width % 2 == 0 && size.height % 2 == 0)
        }
    }

    @Test("On a single processor there is one encoding unless the application wants more")
    func oneProcessor() {
        #expect(plans(1280, 720, processors: 1).count == 1)
        #expect(plans(1280, 720, simulcast: true, processors: 1).count == 3)
    }

    @Test("A smaller encoding has the rate of its size, and never more than its part of the largest one's")
    func simulcastBitrates() {
        let size = Dimensions(width: 1280, height: 720)
        func rates(_ maxBitrate: Int?, min minBitrate: Int? = nil) -> (highest: [Int], lowest: [Int?]) {
            var options = VideoPublishOptions()
            options.maxBitrate = maxBitrate.map { .kilobitsPerSecond($0) }
            options.minBitrate = minBitrate.map { .kilobitsPerSecond($0) }
            let plans = options.plans(for: size, processors: 2)
            return (
                plans.map { $0.highestBitrate(in: size, of: .forPublishing).bitsPerSecond / 1000 },
                plans.map { $0.lowestBitrate.map { $0.bitsPerSecond / 1000 } }
            )
        }
        #expect(rates(nil).highest == [300, 800, 2500] && rates(nil).lowest == [nil, nil, nil])
        #expect(rates(800).highest == [200, 400, 800])
        #expect(rates(40_000).highest == [300, 800, 40_000])
        #expect(rates(800, min: 500).lowest == [500, 500, 500])
        #expect(rates(800, min: 900).lowest == [800, 800, 800])
        #expect(rates(nil, min: 1).lowest == [10, 10, 10])
    }

    private func completed(_ options: VideoPublishOptions, _ source: any VideoSource) -> DegradationPreference? {
        options.encodingParameters.completed(for: source.contentHint).degradationPreference
    }

    @Test(
        "The source's content hint decides what is given up first, unless the option does",
        arguments: [
            (VideoContentHint.none, DegradationPreference.balanced), (.motion, .maintainFramerate),
            (.detail, .maintainResolution), (.text, .maintainResolution),
        ]
    )
    func contentHints(hint: VideoContentHint, preference: DegradationPreference) {
        let source = PushedSource(contentHint: hint)
        var options = VideoPublishOptions()
        #expect(completed(options, source) == preference)
        for chosen in [DegradationPreference.balanced, .maintainFramerate, .maintainResolution] {
            options.degradationPreference = chosen
            #expect(completed(options, source) == chosen)
        }
        #expect(ScreenSource().contentHint == .detail && PatternSource().contentHint == .none)
    }

    @Test("A source says whether it is a screencast: what shows a screen is one, and nothing else")
    func screencasts() {
        let device = CaptureDevice(path: "/dev/video0", name: "None", busInfo: "none", driver: "none")
        let painted = { (kind: VideoSourceKind) in
            PacedSource(dimensions: Dimensions(width: 16, height: 16), frameRate: FrameRate(5), kind: kind) { _, _ in
                true
            }
        }
        let screens: [any VideoSource] = [
            ScreenSource(), PushedSource(kind: .screen), CapturerSource(IdleCapturer(), kind: .screen),
            painted(.screen),
        ]
        let others: [any VideoSource] = [
            CameraSource(device: device), PushedSource(), PatternSource(), CapturerSource(IdleCapturer()),
            painted(.other),
        ]
        for source in screens {
            #expect(source.isScreencast && source.contentHint == .detail)
            #expect(completed(VideoPublishOptions(), source) == .maintainResolution)
        }
        #expect(others.allSatisfy { !$0.isScreencast && $0.contentHint == .none })
    }

    @Test(
        "Each encoding is degraded as the option says, with simulcast or without, and compressed already or not",
        arguments: [DegradationPreference.balanced, .maintainFramerate, .maintainResolution]
    )
    func preferences(preference: DegradationPreference) async throws {
        var options = VideoPublishOptions()
        options.degradationPreference = preference
        let size = Dimensions(width: 640, height: 480)
        for (isSimulcast, isRelaying, count) in [(true, false, 2), (false, false, 1), (false, true, 1)] {
            let bench = try PublisherBench(
                options: options,
                announced: size,
                isSimulcast: isSimulcast,
                isRelaying: isRelaying
            )
            let lanes = bench.publisher.lanes.map { $0.plan.lane(of: $0.track.route, in: size, at: FrameRate(30)) }
            #expect(lanes.map(\.preference) == Array(repeating: preference, count: count))
            await bench.publisher.stop()
        }
    }

    @Test("A written frame is taken if the track is received and written to, and its writer is told if it is not")
    func written() async throws {
        let track = LocalVideoTrack(writtenAs: "arm")
        #expect(!track.write(picture(64, 48)), "nobody receives it")
        let bench = try PublisherBench()
        track.source.sinks.add(bench.publisher)
        var (newer, older) = (picture(64, 48, at: 2), picture(64, 48, at: 1))
        newer.timestamp = MonotonicClock.now
        older.timestamp = newer.timestamp - .milliseconds(33)
        #expect(track.write(newer))
        #expect(!track.write(older), "it is older than the one before")
        #expect(track.writeStatistics.framesCaptured == 3 && track.writeStatistics.framesDropped.total == 2)
        track.source.sinks.remove(bench.publisher)
        await bench.publisher.stop()
        let other = LocalVideoTrack(source: HandSource())
        #expect(!other.write(picture(64, 48)), "its frames are not written")
        #expect(other.writeStatistics == CaptureStatistics())
    }

    @Test("A track is called by its source unless it has a name")
    func trackNames() {
        #expect(LocalVideoTrack(source: PatternSource()).name == "pattern")
        #expect(LocalVideoTrack(source: NoiseSource()).sourceKind == "noise")
        let track = LocalVideoTrack(source: HandSource(), name: "arm")
        #expect(track.name == "arm" && track.sourceKind == "other")
        #expect(track.statistics == LocalVideoTrackStatistics() && track.failure == nil)
    }
}
