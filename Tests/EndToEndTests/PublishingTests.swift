import Glibc
import MediaCore
import RoomKit
import RoomProtocol
import TestSupport
import Testing
import Threading

/// A source whose pictures the test makes, and whose stop it may hold up.
private final class HandSource: VideoCapturer {
    let sinks = VideoSinks()
    var captureFormat: VideoFormat? { nil }
    var isCapturing: Bool { true }
    private let whenStopped: @Sendable () async -> Void

    init(whenStopped: @escaping @Sendable () async -> Void = {}) {
        self.whenStopped = whenStopped
    }

    func startCapture() async throws {}
    func stopCapture() async {}
    func startCapture(for sink: any VideoSink) async throws { sinks.add(sink) }
    func stopCapture(for sink: any VideoSink) async { await whenStopped() }

    /// Delivers a picture, whose noise no encoder makes small if it is `noisy`.
    func deliver(_ dimensions: Dimensions = testSize, noisy: Bool = false) {
        let buffer = VideoBuffer(dimensions: dimensions)
        buffer.withMutablePlanes { luma, chromaU, chromaV in
            luma.update(repeating: 100)
            luma.withUnsafeMutableBytes { bytes in
                if noisy, let start = bytes.baseAddress { arc4random_buf(start, bytes.count) }
            }
            chromaU.update(repeating: 128)
            chromaV.update(repeating: 128)
        }
        sinks.deliver(VideoFrame(buffer: buffer, timestamp: MonotonicClock.now))
    }
}

@Suite("Publishing", .timeLimit(.minutes(5)))
struct PublishingTests {
    /// Publishes a track of `source` and waits until `viewer` decodes it.
    private func show(
        _ source: HandSource,
        name: String,
        from author: Member,
        to viewer: Member,
        size: Dimensions = testSize,
        options: VideoPublishOptions = VideoPublishOptions()
    ) async throws -> (track: LocalVideoTrack, remote: RemoteVideoTrack) {
        let track = LocalVideoTrack(source: source, name: name)
        let publishing = Task { try await author.room.localParticipant.publish(track, options: options) }
        try await eventually("it waits for a picture") { source.sink != nil }
        source.deliver(size)
        try await publishing.value
        let remote = try await viewer.subscribedTrack(name)
        try await eventually("a picture is decoded") {
            source.deliver(size)
            return remote.statistics.framesDecoded > 0
        }
        return (track, remote)
    }

    // Each call hopped to the room by itself, and the last to arrive was announced last: viewers stayed black.
    @Test("Whichever of two calls of setEnabled comes last, it is announced last")
    func enabledInOrder() async throws {
        let stage = try Stage()
        let (author, viewer) = (try await stage.join("author"), try await stage.join("viewer"))
        let source = HandSource()
        let (track, remote) = try await show(source, name: "hand", from: author, to: viewer)
        for round in 0..<1000 {
            async let off: Void = Task.detached { await track.setEnabled(false) }.value
            async let on: Void = Task.detached { await track.setEnabled(true) }.value
            _ = await (off, on)
            let isEnabled = track.isEnabled
            try await eventually("round \(round): the viewer hears: \(isEnabled)") {
                remote.isEnabled == isEnabled
            }
        }
        await author.room.disconnect()
        await viewer.room.disconnect()
    }

    /// Accepts a track as `TR_own`, and wants its only encoding.
    private static func accept(_ request: Publish, at peer: SocketPeer) {
        var info = ScriptedServer.theirTrack
        (info.id, info.alias, info.name) = ("TR_own", 9, request.name)
        peer.tell(.published(Published(requestId: request.requestId, track: info)))
        peer.tell(.layersWanted(LayersWanted(trackId: "TR_own", simulcastLayers: [0])))
    }

    // What the server wanted of tracks that never came to be filled the list, and a later track was not encoded.
    @Test("A track is encoded although the server wanted encodings of many tracks whose publication failed")
    func unclaimedWishes() async throws {
        let server = try ScriptedServer { peer, text in
            switch try? ClientMessage(reading: text) {
            case .join: ScriptedServer.welcome(peer, text)
            case .publish(let request) where request.name == "refused":
                for number in 0..<70 {
                    peer.tell(.layersWanted(LayersWanted(trackId: "TR_\(number)", simulcastLayers: [0])))
                }
                peer.tell(.error(ErrorMessage(.limitReached, "no", fatal: false, requestId: request.requestId)))
            case .publish(let request): Self.accept(request, at: peer)
            default: break
            }
        }
        defer { server.stop() }
        let member = try await Member(at: server.url)
        let refused = LocalVideoTrack(
            source: PatternSource(dimensions: testSize, frameRate: FrameRate(30)),
            name: "refused"
        )
        let error = await #expect(throws: RoomError.self) { try await member.room.localParticipant.publish(refused) }
        #expect(error?.serverCode == 4429)
        let track = makePattern()
        try await member.room.localParticipant.publish(track)
        try await eventually("pictures are sent") { track.statistics.framesSent >= 5 }
        await member.room.disconnect()
    }

    // A track of 15 frames a second that came at 30 later was announced with 15 for ever, and again so where the source
    // states no rate.
    @Test("The server is told another rate of the pictures", arguments: [false, true])
    func otherRate(isWritten: Bool) async throws {
        let server = try ScriptedServer { peer, text in
            switch try? ClientMessage(reading: text) {
            case .join: ScriptedServer.welcome(peer, text)
            case .publish(let request): Self.accept(request, at: peer)
            default: break
            }
        }
        defer { server.stop() }
        let member = try await Member(at: server.url)
        let pushed = PushedSource(kind: .camera)
        let track = isWritten ? LocalVideoTrack(source: pushed, name: "written") : makePattern()
        let writing = Task {
            while isWritten {
                let frame = VideoFrame(buffer: VideoBuffer(dimensions: testSize), timestamp: MonotonicClock.now)
                _ = pushed.write(frame)
                try await Task.sleep(for: .milliseconds(33))
            }
        }
        defer { writing.cancel() }
        var slow = VideoFormatRequest()
        slow.frameRate = FrameRate(15)
        track.source.requestOutputFormat(slow)
        try await member.room.localParticipant.publish(track)
        let peer = try await server.peer()
        let messages = { peer.texts.compactMap { try? ClientMessage(reading: $0) } }
        let published = messages().compactMap { message in
            if case .publish(let request) = message { request.frameRate } else { nil }
        }
        #expect(published == [15])
        let updates = {
            messages().compactMap { message in
                if case .updateTrack(let update) = message { update } else { nil }
            }
        }
        track.source.resetOutputFormat()
        try await eventually("the server is told") { !updates().isEmpty }
        #expect(updates() == [UpdateTrack(trackId: "TR_own", frameRate: 30)])
        await member.room.disconnect()
    }

    // A cancelled task did not wait: what the connection had not taken within a millisecond was lost and not counted.
    @Test("Encoded frames go out or are counted, though the task that withdraws the track was cancelled")
    func cancelledUnpublishing() async throws {
        let isReading = Monitor(true)
        let server = try ScriptedServer { peer, text in
            switch try? ClientMessage(reading: text) {
            case .join: ScriptedServer.welcome(peer, text)
            case .publish(let request): Self.accept(request, at: peer)
            case .unsubscribe:
                // Nothing is read as long as this takes.
                isReading.withLock { $0 = false }
                usleep(100_000)
            default: break
            }
        }
        defer { server.stop() }
        var options = ConnectOptions(roomName: "stage")
        options.url = server.url
        let member = try await Member(options)
        let theirs = try await member.subscribedTrack()
        let source = HandSource()
        let track = LocalVideoTrack(source: source, name: "hand")
        // More than the socket takes at once.
        let size = Dimensions(width: 1280, height: 720)
        var publishOptions = VideoPublishOptions()
        publishOptions.maxBitrate = .kilobitsPerSecond(300_000)
        let publishing = Task { [publishOptions] in
            try await member.room.localParticipant.publish(track, options: publishOptions)
        }
        try await eventually("it waits for a picture") { source.sink != nil }
        source.deliver(size, noisy: true)
        try await publishing.value
        try await eventually("a picture is sent") {
            source.deliver(size, noisy: true)
            return track.statistics.framesSent > 0
        }
        await member.room.unsubscribe(from: theirs)
        try await eventually("the server reads nothing") { !isReading.withLock { $0 } }
        let encoded = track.statistics.framesEncoded
        try await eventually("a picture is encoded") {
            source.deliver(size, noisy: true)
            return track.statistics.framesEncoded > encoded
        }
        let withdrawing = Task {
            try? await Task.sleep(for: .seconds(60))
            await member.room.localParticipant.unpublish(track)
        }
        withdrawing.cancel()
        await withdrawing.value
        let statistics = track.statistics
        #expect(statistics.framesSent + statistics.framesExpired == statistics.framesEncoded)
        await member.room.disconnect()
    }

    // Each track was stopped and flushed for up to half a second before the next one's turn came.
    @Test("Leaving stops all tracks at once, not one after the other")
    func leavingAtOnce() async throws {
        let stage = try Stage()
        let author = try await stage.join("author")
        let stopping = Monitor(0)
        for name in ["left", "right"] {
            let source = HandSource {
                stopping.withLock { $0 += 1 }
                // Each waits for the other.
                try? await eventually("both are stopped") { stopping.withLock { $0 } >= 2 }
                stopping.withLock { $0 += $0 >= 2 ? 10 : 0 }
            }
            let track = LocalVideoTrack(source: source, name: name)
            let publishing = Task { try await author.room.localParticipant.publish(track) }
            try await eventually("it waits for a picture") { source.sink != nil }
            source.deliver()
            try await publishing.value
        }
        await author.room.disconnect()
        #expect(stopping.withLock { $0 } == 22)
    }

    // It did nothing, and the track appeared after all.
    @Test("A track that is withdrawn while it waits for its first picture does not appear")
    func unpublishedBeforeFirstPicture() async throws {
        let stage = try Stage()
        let (author, viewer) = (try await stage.join("author"), try await stage.join("viewer"))
        let source = HandSource()
        let track = LocalVideoTrack(source: source, name: "hand")
        let publishing = Task { try await author.room.localParticipant.publish(track) }
        try await eventually("it waits for a picture") { source.sink != nil }
        await author.room.localParticipant.unpublish(track)
        #expect(source.sink == nil)
        source.deliver()
        await #expect(throws: (any Error).self) { try await publishing.value }
        #expect(await author.room.localParticipant.videoTracks.isEmpty)
        // It can be published again.
        _ = try await show(source, name: "again", from: author, to: viewer)
        await author.room.disconnect()
        await viewer.room.disconnect()
        let names = viewer.events.compactMap { event in
            if case .trackPublished(let track, _) = event { track.name } else { nil }
        }
        #expect(names == ["again"])
    }

    /// A member at a server that leaves the answers to requests to publish to the test.
    private struct Undecided {
        let requests = Monitor<[Publish]>([])
        let server: ScriptedServer
        let member: Member
        let peer: SocketPeer

        init() async throws {
            let requests = requests
            server = try ScriptedServer { peer, text in
                switch try? ClientMessage(reading: text) {
                case .join: ScriptedServer.welcome(peer, text)
                case .publish(let request): requests.withLock { $0.append(request) }
                default: break
                }
            }
            var options = ConnectOptions(roomName: "stage")
            options.url = server.url
            member = try await Member(options)
            peer = try await server.peer()
        }

        /// Begins to publish a track, and waits until it has a picture.
        func publish() async throws -> (track: LocalVideoTrack, publishing: Task<Void, any Error>) {
            let source = HandSource()
            let track = LocalVideoTrack(source: source, name: "hand")
            let publishing = Task { try await member.room.localParticipant.publish(track) }
            try await eventually("it waits for a picture") { source.sink != nil }
            source.deliver()
            return (track, publishing)
        }

        /// The request number `index`, once the server has got it.
        func request(_ index: Int) async throws -> Publish {
            try await eventual("the server is asked") { requests.withLock { $0.count > index ? $0[index] : nil } }
        }

        func accept(_ request: Publish, as id: String) {
            var info = ScriptedServer.theirTrack
            (info.id, info.alias, info.name) = (id, 9, "hand")
            peer.tell(.published(Published(requestId: request.requestId, track: info)))
        }

        /// What the server was asked so far.
        var messages: [ClientMessage] { peer.texts.compactMap { try? ClientMessage(reading: $0) } }

        /// The place of the message that withdraws the track `id`.
        func withdrawal(of id: String) -> Int? {
            messages.firstIndex { if case .unpublish(let body) = $0 { body.trackId == id } else { false } }
        }
    }

    @Test("A track that is withdrawn while the server is asked is withdrawn there as well")
    func unpublishedBeforeAnswer() async throws {
        let bench = try await Undecided()
        defer { bench.server.stop() }
        let (track, publishing) = try await bench.publish()
        let request = try await bench.request(0)
        await bench.member.room.localParticipant.unpublish(track)
        bench.accept(request, as: "TR_own")
        await #expect(throws: (any Error).self) { try await publishing.value }
        try await eventually("the server is told") { bench.withdrawal(of: "TR_own") != nil }
        #expect(await bench.member.room.localParticipant.videoTracks.isEmpty)
        await bench.member.room.disconnect()
    }

    @Test("A track that is given up before the answer can be published again at once", arguments: [true, false])
    func publishedAgainBeforeAnswer(isAccepted: Bool) async throws {
        let bench = try await Undecided()
        defer { bench.server.stop() }
        let first = try await bench.publish().publishing
        let former = try await bench.request(0)
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        let second = try await bench.publish().publishing
        // It is not asked for another track of the name while it may have the first one.
        try await Task.sleep(for: .milliseconds(300))
        #expect(bench.requests.withLock { $0.count } == 1)
        if isAccepted {
            bench.accept(former, as: "TR_former")
        } else {
            let refusal = ErrorMessage(.limitReached, "full", fatal: false, requestId: former.requestId)
            bench.peer.tell(.error(refusal))
        }
        let latter = try await bench.request(1)
        let asked = try #require(bench.messages.lastIndex { if case .publish = $0 { true } else { false } })
        let withdrawn = bench.withdrawal(of: "TR_former")
        #expect(isAccepted ? withdrawn.map { $0 < asked } == true : withdrawn == nil)
        bench.accept(latter, as: "TR_latter")
        try await second.value
        #expect(await bench.member.room.localParticipant.videoTracks.count == 1)
        await bench.member.room.disconnect()
    }

    @Test(
        "Pictures of another size than the track was announced with are shown as they are, with even sides",
        arguments: [(640, 360), (180, 320), (321, 100), (100, 181)]
    )
    func otherSize(width: Int, height: Int) async throws {
        let stage = try Stage()
        let (author, viewer) = (try await stage.join("author"), try await stage.join("viewer"))
        let source = HandSource()
        let (track, remote) = try await show(source, name: "hand", from: author, to: viewer)
        let renderer = CountingRenderer()
        remote.addRenderer(renderer)
        let size = Dimensions(width: width, height: height)
        let even = Dimensions(width: width & ~1, height: height & ~1)
        try await eventually("such pictures are shown: \(renderer.sizes)") {
            source.deliver(size)
            return renderer.frames >= 3 && renderer.sizes.contains { $0 == size || $0 == even }
        }
        #expect(track.failure == nil)
        await author.room.disconnect()
        await viewer.room.disconnect()
    }
}
