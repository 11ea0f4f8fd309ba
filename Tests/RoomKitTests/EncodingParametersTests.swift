import MediaCore
import RelayServer
import RoomProtocol
import TestTools
import Testing

@testable import RoomKit

@Suite("Encoding parameters of published tracks", .timeLimit(.minutes(1)))
struct EncodingParametersTests {
    private func parameters(
        _ most: Int?,
        least: Int? = nil,
        change: (inout VideoEncodingParameters) -> Void = { _ in }
    ) -> VideoEncodingParameters {
        var parameters = VideoEncodingParameters()
        parameters.maxBitrate = most.map { .kilobitsPerSecond($0) }
        parameters.minBitrate = least.map { .kilobitsPerSecond($0) }
        change(&parameters)
        return parameters
    }

    private func options(_ parameters: VideoEncodingParameters) -> VideoPublishOptions {
        var options = VideoPublishOptions()
        options.encodingParameters = parameters
        return options
    }

    /// The bytes of `count` frames of noise.
    private func bytes(_ count: Int, from index: inout Int, _ bench: PublisherBench) throws -> Int {
        var bytes = 0
        for _ in 0..<count {
            bytes += try bench.pass(noise(160, 120, at: index))?.range.count ?? 0
            index += 1
        }
        return bytes
    }

    @Test("The options' fields are those of their encoding parameters")
    func view() {
        var options = VideoPublishOptions()
        options.maxBitrate = .kilobitsPerSecond(800)
        options.minBitrate = .kilobitsPerSecond(200)
        options.degradationPreference = .maintainResolution
        options.priority = .high
        let parameters = parameters(800, least: 200) {
            ($0.degradationPreference, $0.priority) = (.maintainResolution, .high)
        }
        #expect(options.encodingParameters == parameters)
        options.encodingParameters = VideoEncodingParameters()
        #expect(options.maxBitrate == nil && options.minBitrate == nil && options.degradationPreference == nil)
        #expect(options.priority == .standard)
    }

    @Test("After the bitrate was lowered, a frame has fewer bytes, and none becomes a keyframe")
    func lowered() async throws {
        let bench = try PublisherBench(options: options(parameters(5000)))
        var index = 0
        // The first frame is a keyframe, and the rate control needs some frames to find its quantizer.
        _ = try bytes(40, from: &index, bench)
        let before = try bytes(40, from: &index, bench)
        bench.publisher.setParameters(parameters(50))
        _ = try bytes(40, from: &index, bench)
        let after = try bytes(40, from: &index, bench)
        #expect(after * 2 < before, "\(before) bytes, then \(after)")
        let layer = bench.publisher.statistics.layers[0]
        #expect(layer.targetBitrate == .kilobitsPerSecond(50))
        #expect(layer.dimensions == Dimensions(width: 160, height: 120) && layer.keyframes == 1)
        await bench.publisher.stop()
    }

    /// The encoding's share of the connection, in whole kilobits per second.
    private func share(_ bench: PublisherBench) -> Int? {
        bench.uplink.status(of: bench.lane.seat).map { $0.lane.share.bitsPerSecond / 1000 }
    }

    @Test("The change takes effect although no picture comes")
    func still() async throws {
        let bench = try PublisherBench(options: options(parameters(5000)))
        _ = try bench.pass(picture(64, 48))
        #expect(try #require(share(bench)) > 200)
        for kilobits in [200, 100] {
            bench.publisher.setParameters(parameters(kilobits, least: kilobits / 2) { $0.priority = .low })
            #expect((kilobits - 2...kilobits).contains(try #require(share(bench))))
        }
        await bench.publisher.stop()
        // The encodings are over; nothing is left to change.
        bench.publisher.setParameters(parameters(100))
    }

    @Test("Pictures of another size keep the parameters that were set")
    func otherSize() async throws {
        let bench = try PublisherBench()
        var index = 0
        _ = try bench.passSome(from: &index)
        bench.publisher.setParameters(parameters(77))
        bench.deliver(picture(96, 64, at: index))
        wait { bench.publisher.statistics.layers[0].dimensions == Dimensions(width: 96, height: 64) }
        #expect((75...77).contains(try #require(share(bench))))
        await bench.publisher.stop()
    }

    @Test("Each encoding of simulcast gets its part of the bitrate, and all get the rest; values are clamped")
    func simulcast() async throws {
        let size = Dimensions(width: 1280, height: 720)
        let bench = try PublisherBench(announced: size, isSimulcast: true)
        func rates() -> [Int] {
            bench.publisher.lanes.map { $0.plan.highestBitrate(in: size, of: .forPublishing).bitsPerSecond / 1000 }
        }
        #expect(rates() == [300, 800, 2500])
        bench.publisher.setParameters(
            parameters(800, least: 900) { ($0.priority, $0.degradationPreference) = (.high, .maintainFramerate) }
        )
        #expect(rates() == [200, 400, 800])
        for plan in bench.publisher.lanes.map(\.plan) {
            #expect(plan.lowestBitrate == .kilobitsPerSecond(800))
            #expect(plan.priority == .high && plan.preference == .maintainFramerate)
        }
        bench.publisher.setParameters(parameters(1_000_000, least: 1))
        #expect(rates() == [300, 800, 40_000])
        #expect(bench.publisher.lanes.map(\.plan.lowestBitrate) == Array(repeating: .kilobitsPerSecond(10), count: 3))
        await bench.publisher.stop()
    }

    @Test("Frames that are compressed already take the priority, and no bitrate")
    func relayed() async throws {
        let bench = try PublisherBench(isRelaying: true)
        bench.publisher.setParameters(parameters(100, least: 50) { $0.priority = .high })
        let plan = bench.lane.plan
        #expect(plan.priority == .high && plan.highestBitrate == nil && plan.lowestBitrate == nil && plan.isRelayed)
        await bench.publisher.stop()
    }

    @Test("A track has parameters from the call of publish on until it is unpublished")
    func lifetime() async throws {
        let server = try RelayServer.start()
        defer { server.stop() }
        let room = try await RoomClient.connect(options: ConnectOptions(roomName: "lab", of: server))
        let source = PushedSource(contentHint: .text)
        let track = LocalVideoTrack(source: source, name: "page")
        func expectNotPublished() {
            #expect(track.encodingParameters == nil)
            let error = #expect(throws: RoomError.self) { try track.setEncodingParameters(parameters(100)) }
            #expect(error?.code == .notPublished && error?.description.contains("\"page\"") == true)
        }
        expectNotPublished()
        let publishing = Task { [options = options(parameters(500))] in
            try await room.localParticipant.publish(track, options: options)
        }
        try await eventually("publishing has begun") { track.encodingParameters == parameters(500) }
        // No picture has come, and the track is not announced yet.
        try track.setEncodingParameters(parameters(400))
        try await eventually("a picture is taken") { source.write(picture(64, 48)) }
        try await publishing.value
        #expect(await room.plans(of: track).map(\.highestBitrate) == [.kilobitsPerSecond(400)])
        try track.setEncodingParameters(parameters(300))
        #expect(track.encodingParameters == parameters(300))
        let plans = await room.plans(of: track)
        #expect(plans.map(\.highestBitrate) == [.kilobitsPerSecond(300)])
        #expect(plans.map(\.preference) == [.maintainResolution], "what is not chosen is the source's")
        await room.localParticipant.unpublish(track)
        expectNotPublished()
        await room.disconnect()
    }
}
