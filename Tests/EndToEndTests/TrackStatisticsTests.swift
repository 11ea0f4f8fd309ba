import Glibc
import MediaCore
import RoomKit
import RoomProtocol
import TestSupport
import Testing
import Threading

@Suite("The statistics of a received track", .timeLimit(.minutes(2)))
struct TrackStatisticsTests {
    /// A member of a scripted room who receives the track with the alias 7, and the server's end of its connection.
    private func viewer(of server: ScriptedServer) async throws -> (Member, SocketPeer, RemoteVideoTrack) {
        let member = try await Member(at: server.url)
        return (member, try await server.peer(), try await member.subscribedTrack())
    }

    private func requests(_ peer: SocketPeer) -> Int {
        peer.texts.count { if case .keyframeRequest? = try? ClientMessage(reading: $0) { true } else { false } }
    }

    @Test("Counts, rates, ages and decode time of a live track are there, and a pause takes the wait away")
    func live() async throws {
        let stage = try Stage()
        let viewer = try await stage.join("viewer")
        let pattern = makePattern()
        let author = try await stage.join("author") { $0.videoTracks = [pattern] }
        let track = try await viewer.subscribedTrack()
        // Rates and recent ages are those of the last second or two, which may have been one of a stop of this machine.
        let live = try await eventual("pictures are shown, also in this moment") {
            let statistics = track.statistics
            let hasRates = statistics.bitrate.bitsPerSecond > 0 && statistics.framesPerSecond > 0
            let hasTimes = statistics.recentFrameAge != nil && statistics.decodeTime != nil
            return statistics.framesRendered >= 40 && hasRates && hasTimes ? statistics : nil
        }
        #expect(live.framesReceived >= live.framesDecoded && live.framesDecoded >= live.framesRendered)
        #expect(live.keyframes >= 1 && live.bytes > 0)
        #expect(live.dimensions == testSize && live.sizeChanges == 0 && live.simulcastLayer == 0)
        #expect(try #require(live.decodeTime) > .zero && live.totalDecodeTime > .zero)
        let (all, recent) = (try #require(live.frameAge), try #require(live.recentFrameAge))
        #expect(.zero < all.p50 && all.p50 <= all.p95 && all.p95 <= all.maximum)
        #expect(.zero < recent.p50 && recent.p50 <= recent.p95 && recent.last > .zero)
        #expect(live.clock == .sameHost && live.ageErrorBound == .zero)
        #expect(live.timeToFirstFrame != nil && live.timeSinceLastFrame != nil)
        await pattern.setEnabled(false)
        try await eventually("the pause is known") { !track.isEnabled }
        #expect(track.statistics.timeSinceLastFrame == nil)
        for member in [author, viewer] { await member.room.disconnect() }
    }

    @Test("A silence between pictures is a freeze, and another simulcast layer shows as such, with its size")
    func freezesAndLayers() async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let (member, peer, track) = try await viewer(of: server)
        var pattern = try EncodedPattern(alias: 7)
        // A picture from before a stop of this machine is rightly not shown; then the next one is.
        func sendUntilShown(_ count: Int) async throws {
            try await eventually("pictures are shown") {
                if track.statistics.framesRendered >= count { return true }
                for packet in try pattern.next() { peer.send(packet) }
                try await Task.sleep(for: .milliseconds(33))
                return false
            }
        }
        let began = MonotonicClock.now
        try await sendUntilShown(12)
        let before = track.statistics
        // A freeze is measured by the intervals before it, which were long on a busy machine.
        let silence = max(.milliseconds(700), MonotonicClock.now.duration(since: began))
        try await Task.sleep(for: silence)
        try await sendUntilShown(before.framesRendered + 1)
        let frozen = track.statistics
        #expect(frozen.freezeCount > before.freezeCount)
        #expect(frozen.totalFreezesDuration - before.totalFreezesDuration >= silence)
        let large = Dimensions(width: 2 * testSize.width, height: 2 * testSize.height)
        var other = try EncodedPattern(alias: 7, size: large)
        for _ in 0..<3 { for packet in try other.next() { peer.send(inLayer(1, packet)) } }
        try await eventually("the other layer is decoded") { track.statistics.simulcastLayer == 1 }
        #expect(track.statistics.dimensions == large)
        #expect(track.statistics.sizeChanges == 1 && track.statistics.framesDropped == 0)
        await member.room.disconnect()
    }

    // The frames were dropped without a word, and the picture stood still until somebody else asked for a keyframe.
    @Test("A simulcast layer that begins without its keyframe is not decoded, and one keyframe is requested")
    func headlessLayer() async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let (member, peer, track) = try await viewer(of: server)
        var pattern = try EncodedPattern(alias: 7)
        var other = try EncodedPattern(alias: 7)
        for packet in try pattern.next() { peer.send(packet) }
        try await eventually("the keyframe is decoded") { track.statistics.framesDecoded == 1 }
        _ = try other.next()
        let began = MonotonicClock.now
        for _ in 0..<5 { for packet in try other.next() { peer.send(inLayer(1, packet)) } }
        try await eventually("a keyframe is requested") { requests(peer) >= 1 }
        for packet in try other.next(isKeyframe: true) { peer.send(inLayer(1, packet)) }
        for packet in try other.next() { peer.send(inLayer(1, packet)) }
        try await eventually("the layer is decoded from its keyframe on") { track.statistics.framesDecoded == 3 }
        #expect(track.statistics.framesDroppedByReason.total == 0 && track.statistics.simulcastLayer == 1)
        // What is not answered for a second is requested again.
        let asked = requests(peer)
        #expect(asked <= 1 + Int(MonotonicClock.now.duration(since: began).seconds), "\(asked)")
        await member.room.disconnect()
    }

    // They were left out without a trace: a viewer without the key saw nothing, and its statistics said nothing.
    @Test("Encrypted frames count as received and dropped, and what can be read is decoded")
    func encryptedFrames() async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let (member, peer, track) = try await viewer(of: server)
        var pattern = try EncodedPattern(alias: 7)
        for _ in 0..<3 { for packet in try pattern.next(isKeyframe: true) { peer.send(packet) } }
        for _ in 0..<4 { for packet in try pattern.next(isKeyframe: true) { peer.send(encrypted(packet)) } }
        for packet in try pattern.next(isKeyframe: true) { peer.send(packet) }
        try await eventually("all are received") { track.statistics.framesReceived == 8 }
        try await eventually("the others are decoded") { track.statistics.framesDecoded == 4 }
        #expect(track.statistics.framesDroppedByReason[.encrypted] == 4 && track.statistics.framesDropped == 4)
        await member.room.disconnect()
    }

    /// The packet with a key id, which says that its frame is encrypted.
    private func encrypted(_ packet: [UInt8]) -> [UInt8] {
        var packet = packet
        packet.insert(contentsOf: [3, 1, 0], at: 48)
        packet[3] += 3
        return packet
    }

    /// The packet in another simulcast layer.
    private func inLayer(_ layer: UInt8, _ packet: [UInt8]) -> [UInt8] {
        var packet = packet
        packet[5] = layer
        return packet
    }

    @Test("The status line of a terminal has size, rates, age and decode time", .enabled(if: Program.isAllowed))
    func statusLine() async throws {
        let server = try await ServerProgram()
        let publisher = try await server.publisher(["--identity", "robot"])
        let command = "\(Program.path(of: "room-client")) subscribe --url \(server.url) --room stage --duration 6"
        let terminal = try Program("script", ["-qefc", command, "/dev/null"], areLeaksSought: false)
        #expect(try await terminal.end() == .exit(0))
        // A line of a moment without pictures has less.
        let parts = ["robot/pattern  320x180  ", " fps  ", "bit/s  frame age p50 ", " ms, same clock", "  decode "]
        let lines = terminal.text.split(separator: "\r")
        #expect(lines.contains { line in parts.allSatisfy { line.contains($0) } }, "\(lines)")
        #expect(try await end([publisher], with: SIGINT) == [.exit(0)])
    }
}
