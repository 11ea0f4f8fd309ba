import MediaCore
import RelayCore
import RoomProtocol
import TestTools
import Testing

/// A track's publisher: makes frames of three temporal layers, and knows of each what it refers to.
final class Camera {
    let track: TrackInfo
    let publisher: Peer
    /// The number of the track's encoding that it makes.
    let simulcastLayer: Int
    var bytesPerFrame: Int
    var wantsKeyframe = true
    /// The bench's clock, by which frames are captured.
    fileprivate var clock: () -> MonotonicInstant = { MonotonicInstant(nanoseconds: 0) }
    /// How many temporal layers the frames have, 3 or 1.
    var temporalLayerCount = 3
    /// What the relay last wanted of the track; `nil` if nobody receives it.
    fileprivate(set) var wanted: WantedLayer?
    /// Frames that one refers to, by number.
    private(set) var references: [UInt32: [UInt32]] = [:]
    private(set) var temporalLayers: [UInt32: UInt8] = [:]
    /// Every packet sent, kept so that no other takes its place.
    private(set) var packets: [PacketBuffer] = []
    private var known: Set<ObjectIdentifier> = []
    private(set) var keyframes: [UInt32] = []
    private var nextNumber: UInt32 = 0
    private var sinceKeyframe = 0
    private var lastBase: UInt32 = 0
    private var lastMiddle: UInt32 = 0
    private var baseLayerIndex: UInt16 = 0

    init(track: TrackInfo, publisher: Peer, simulcastLayer: Int = 0, bytesPerFrame: Int) {
        self.track = track
        self.publisher = publisher
        self.simulcastLayer = simulcastLayer
        self.bytesPerFrame = bytesPerFrame
    }

    var framesSent: Int { Int(nextNumber) }

    func hasSent(_ packet: PacketBuffer) -> Bool { known.contains(ObjectIdentifier(packet)) }

    /// The next frame's packets: a keyframe when one is wanted, else by the pattern 0 2 1 2, with a sync of layer 1 in
    /// every second turn.
    func nextFrame(extensionBytes: Int = 0, captured time: MonotonicInstant? = nil) -> [PacketBuffer] {
        let isKeyframe = wantsKeyframe
        wantsKeyframe = false
        sinceKeyframe = isKeyframe ? 0 : sinceKeyframe + 1
        let layer: UInt8 = isKeyframe || temporalLayerCount == 1 ? 0 : [0, 2, 1, 2][sinceKeyframe % 4]
        let isSync = layer == 1 && sinceKeyframe % 8 == 2
        let number = nextNumber
        nextNumber += 1
        switch layer {
        case 0: references[number] = isKeyframe ? [] : [lastBase]
        case 1: references[number] = isSync ? [lastBase] : [lastBase, lastMiddle]
        default: references[number] = [lastBase, lastMiddle]
        }
        temporalLayers[number] = layer
        if layer == 0 {
            lastBase = number
            baseLayerIndex &+= 1
        }
        if isKeyframe || layer == 1 { lastMiddle = number }
        if isKeyframe { keyframes.append(number) }
        let info = EncodedFrameInfo(
            number: number,
            simulcastLayer: UInt8(simulcastLayer),
            timestamp: MonotonicInstant(nanoseconds: 0),
            isKeyframe: isKeyframe,
            temporalLayer: layer,
            isLayerSync: isSync,
            isDiscardable: layer == 2,
            baseLayerIndex: baseLayerIndex
        )
        let made = cut(info, length: isKeyframe ? bytesPerFrame * 4 : bytesPerFrame, extensionBytes, captured: time)
        packets += made
        for packet in made { known.insert(ObjectIdentifier(packet)) }
        return made
    }

    /// Cut as by a publisher; the payload is left as it is in memory, since nobody looks at it.
    private func cut(
        _ info: EncodedFrameInfo,
        length: Int,
        _ extensionBytes: Int,
        captured time: MonotonicInstant?
    ) -> [PacketBuffer] {
        let limit = Packetizer.maximumPayload - extensionBytes
        return stride(from: 0, to: length, by: limit).map { offset in
            var header = MediaPacketHeader(
                frame: info,
                trackAlias: track.alias,
                captureTime: RoomTime(microseconds: (time ?? clock()).microseconds),
                encodeDelay: .zero,
                frameLength: length,
                chunkOffset: offset,
                payloadLength: min(limit, length - offset)
            )
            header.headerLength += extensionBytes
            return makePacket(header)
        }
    }
}

func makePacket(_ header: MediaPacketHeader) -> PacketBuffer {
    let packet = PacketBuffer(capacity: header.headerLength + header.payloadLength)
    packet.count = header.headerLength + header.payloadLength
    packet.withMutableBytes { message in
        for offset in 48..<min(header.headerLength + 1, message.byteCount) {
            message.storeBytes(of: UInt8(truncatingIfNeeded: offset), toByteOffset: offset, as: UInt8.self)
        }
        header.write(to: &message)
    }
    return packet
}

extension PacketBuffer {
    var bytes: [UInt8] { withBytes { bytes in bytes.withUnsafeBytes { Array($0) } } }

    func header() throws -> MediaPacketHeader { try withBytes { try MediaPacketHeader(reading: $0) } }
}

/// What a subscriber has of one track, and whether what it is sent makes sense.
struct Receiver {
    private(set) var wholeFrames: [UInt32] = []
    /// The simulcast layer of each whole frame.
    private(set) var simulcastLayers: [Int] = []
    private(set) var problems: [String] = []
    let catchUpThrough: UInt32?
    /// The simulcast layer that `catchUpThrough` is about.
    let firstLayer: Int
    private var decoded: Set<UInt32> = []
    private var last: MediaPacketHeader?

    init(simulcastLayer: Int = 0, catchUpThrough: UInt32?) {
        firstLayer = simulcastLayer
        self.catchUpThrough = catchUpThrough
    }

    mutating func receive(_ packet: PacketBuffer, of camera: Camera) {
        guard let header = try? packet.header() else { return problems.append("an unreadable packet") }
        if !camera.hasSent(packet) { problems.append("a packet that the publisher did not send: \(header)") }
        if header.relayTime == nil { problems.append("a packet without the relay's time: \(header)") }
        let number = header.frameNumber
        if header.isFirstChunk {
            if let last, last.simulcastLayer != header.simulcastLayer {
                if !header.isKeyframe { problems.append("a change of the simulcast layer without a keyframe") }
                decoded = []
            } else if let last, last.frameNumber >= number {
                problems.append("frame \(number) after \(last.frameNumber)")
            }
            let missing = (camera.references[number] ?? []).filter { !decoded.contains($0) }
            if !missing.isEmpty { problems.append("frame \(number) without \(missing), to which it refers") }
            if let catchUpThrough, number <= catchUpThrough, header.temporalLayer > 0,
                Int(header.simulcastLayer) == firstLayer, simulcastLayers.allSatisfy({ $0 == firstLayer })
            {
                problems.append("frame \(number) of layer \(header.temporalLayer) in the catch-up")
            }
        } else if let last, last.frameNumber == number, last.simulcastLayer == header.simulcastLayer,
            !last.isLastChunk
        {
            if Int(header.chunkOffset) != Int(last.chunkOffset) + last.payloadLength {
                problems.append("byte \(header.chunkOffset) of frame \(number) out of turn")
            }
        } else {
            problems.append("a middle of frame \(number) without its beginning")
        }
        last = header
        if header.isLastChunk {
            decoded.insert(number)
            wholeFrames.append(number)
            simulcastLayers.append(Int(header.simulcastLayer))
        }
    }
}

/// One connection as seen from its client.
final class Peer {
    let id: SlotID
    fileprivate(set) var messages: [ServerMessage] = []
    fileprivate(set) var packets: [PacketBuffer] = []
    fileprivate(set) var close: (code: RoomErrorCode, reason: String)?
    fileprivate(set) var receivers: [UInt32: Receiver] = [:]
    /// The relay's acknowledgements of what this peer publishes.
    fileprivate(set) var acknowledgements: [MediaAcknowledgement] = []
    /// Bytes of all messages that it has been sent.
    fileprivate(set) var bytesTaken = 0
    /// Bytes of all messages that it has sent.
    fileprivate(set) var bytesSent = 0
    fileprivate(set) var problems: [String] = []
    fileprivate(set) var joined: Joined?
    /// What it has been sent, in order.
    fileprivate(set) var order: [Item] = []
    fileprivate var aliases: [String: UInt32] = [:]
    /// Bytes that the socket can take now.
    var credit = 0

    /// Something that a peer is sent, as far as its place among the others matters.
    enum Item: Equatable {
        case switchedOff, switchedOn, keyframe, frame
    }

    init(id: SlotID) { self.id = id }

    var keyframeRequests: Int {
        messages.count { if case .keyframeRequest = $0 { true } else { false } }
    }

    var errors: [RoomErrorCode] {
        messages.compactMap { if case .error(let error) = $0 { RoomErrorCode(rawValue: error.code) } else { nil } }
    }

    var layersWanted: [[Int]] {
        messages.compactMap { if case .layersWanted(let body) = $0 { body.simulcastLayers } else { nil } }
    }

    var allProblems: [String] { problems + receivers.values.flatMap(\.problems) }

    func forgetMessages() { messages = [] }

    func receiver(_ camera: Camera) -> Receiver? { receivers[camera.track.alias] }
}

/// A relay with its driver: a clock that stands until it is moved, and sockets that take what they are told to.
final class RelayBench {
    var relay: Relay
    var now = MonotonicInstant(nanoseconds: 1_000_000_000)
    var generator: SeededGenerator
    private(set) var cameras: [UInt32: Camera] = [:]
    /// The cameras of the other encodings of a track, by its alias and in order of their numbers.
    private(set) var furtherCameras: [UInt32: [Camera]] = [:]
    private var awakened: [SlotID] = []
    private var overdue: [SlotID] = []
    /// Packets that all peers together have taken.
    private(set) var mediaTaken = 0
    private(set) var notices: [RelayNotice] = []

    init(seed: UInt64 = 1, _ change: (inout RelaySettings) -> Void = { _ in }) {
        var settings = RelaySettings()
        change(&settings)
        relay = Relay(settings: settings, bootID: "boot", serverName: "bench")
        generator = SeededGenerator(seed: seed)
    }

    // MARK: Peers

    func open(subprotocol: String? = WireFormat.subprotocol, path: String = "/") -> Peer {
        Peer(id: relay.connectionOpened(subprotocol: subprotocol, path: path, at: now))
    }

    func send(_ message: ClientMessage, from peer: Peer) { send(text: message.text, from: peer) }

    func send(text: String, from peer: Peer) {
        peer.bytesSent += text.utf8.count
        relay.receive(text, from: peer.id, at: now, using: &generator)
    }

    /// The peer acknowledges what it has been sent so far, or `bytes`.
    func acknowledge(_ peer: Peer, bytes: Int? = nil, receivedAt time: MonotonicInstant? = nil) {
        let body = MediaAcknowledgement(
            cumulativeBytes: UInt64(bytes ?? peer.bytesTaken),
            receiveTime: .init(microseconds: UInt64((time ?? now).microseconds)),
            trackAlias: 0,
            frameNumber: 0
        )
        send(body, from: peer)
    }

    func send(_ body: MediaAcknowledgement, from peer: Peer) {
        let packet = PacketBuffer(capacity: MediaAcknowledgement.length)
        packet.count = MediaAcknowledgement.length
        packet.withMutableBytes { body.write(to: &$0) }
        receive([packet], from: peer)
    }

    /// Joins, and takes what the relay says.
    func join(_ identity: String, room: String = "room", automatic: Bool? = nil) -> Peer {
        let peer = enter(identity, room: room, automatic: automatic)
        pull(peer)
        return peer
    }

    /// Joins, and takes nothing.
    func enter(_ identity: String, room: String = "room", automatic: Bool? = nil) -> Peer {
        let peer = open()
        send(.join(Join(room: room, identity: identity, automaticSubscription: automatic)), from: peer)
        return peer
    }

    func close(_ peer: Peer) { relay.connectionClosed(peer.id, at: now) }

    /// The socket of `peer` takes up to `limit` bytes of media, or all that there is.
    func pull(_ peer: Peer, limit: Int = .max) {
        var taken = 0
        while taken < limit, let turn = relay.nextMessage(for: peer.id, at: now) {
            switch turn.message {
            case .text(let text): take(text, peer)
            case .close(let code, let reason):
                if peer.close != nil { peer.problems.append("closed twice") }
                peer.close = (code, reason)
            case .acknowledgement(let acknowledgement):
                peer.acknowledgements.append(acknowledgement)
                peer.bytesTaken += MediaAcknowledgement.length
            case .media(let packet):
                taken += packet.count
                mediaTaken += 1
                take(packet, peer)
            }
            // As the driver does it: what this gets wrong is missing at the peer, or comes too late.
            if turn.isLast { return }
        }
    }

    /// The sockets of `peers` take all there is, and nobody looks at it: in a large room, reading takes its time.
    func discard(_ peers: [Peer]) {
        for peer in peers {
            while let turn = relay.nextMessage(for: peer.id, at: now) {
                if case .media = turn.message { mediaTaken += 1 }
                if turn.isLast { break }
            }
        }
    }

    func pull(_ peers: [Peer]) { for peer in peers { pull(peer) } }

    private func take(_ text: String, _ peer: Peer) {
        peer.bytesTaken += text.utf8.count
        if text.utf8.count > WireFormat.maximumTextMessage.bytes { peer.problems.append("a message too long") }
        guard let message = try? ServerMessage(reading: text) else {
            return peer.problems.append("unreadable: \(text)")
        }
        peer.messages.append(message)
        switch message {
        case .joined(let body): peer.joined = body
        case .subscribed(let body):
            peer.aliases[body.trackId] = body.alias
            peer.receivers[body.alias] = Receiver(
                simulcastLayer: body.simulcastLayer ?? 0,
                catchUpThrough: body.catchUpThrough
            )
        case .trackSwitchedOff: peer.order.append(.switchedOff)
        case .trackSwitchedOn: peer.order.append(.switchedOn)
        case .unsubscribed(let body): forget(body.trackId, peer)
        case .trackUnpublished(let body): forget(body.trackId, peer)
        case .layersWanted(let body):
            for camera in encodings(ofTrack: body.trackId) { want(body.layers, of: camera) }
        case .keyframeRequest(let body):
            for camera in encodings(ofTrack: body.trackId)
            where camera.simulcastLayer == body.simulcastLayer ?? camera.simulcastLayer {
                camera.wantsKeyframe = true
            }
        default: break
        }
    }

    private func want(_ layers: [WantedLayer], of camera: Camera) {
        let wanted = layers.first { $0.simulcastLayer == camera.simulcastLayer }
        if wanted != nil && camera.wanted == nil { camera.wantsKeyframe = true }
        camera.wanted = wanted
    }

    /// The cameras of a track's encodings, in order of their numbers.
    func encodings(of camera: Camera) -> [Camera] { encodings(ofTrack: camera.track.id) }

    private func encodings(ofTrack id: String) -> [Camera] {
        guard let first = cameras.values.first(where: { $0.track.id == id }) else { return [] }
        return [first] + (furtherCameras[first.track.alias] ?? [])
    }

    private func take(_ packet: PacketBuffer, _ peer: Peer) {
        peer.packets.append(packet)
        peer.bytesTaken += packet.count
        guard let header = try? packet.header(), let first = cameras[header.trackAlias] else {
            return peer.problems.append("a packet of no track")
        }
        peer.order.append(header.isFirstChunk && header.isKeyframe ? .keyframe : .frame)
        let layer = Int(header.simulcastLayer)
        let camera = layer == 0 ? first : furtherCameras[header.trackAlias]?[layer - 1] ?? first
        guard peer.receivers[header.trackAlias] != nil, peer.aliases[camera.track.id] != nil else {
            return peer.problems.append("a packet of track \(header.trackAlias), which is not subscribed to")
        }
        peer.receivers[header.trackAlias]?.receive(packet, of: camera)
    }

    private func forget(_ trackID: String, _ peer: Peer) { peer.aliases[trackID] = nil }

    // MARK: Tracks

    /// Publishes, and takes the relay's answer; `nil` if it was refused.
    ///
    /// Of a track with several `layers` it is the camera of the smallest encoding.
    func publish(
        _ peer: Peer,
        name: String = "front",
        bytesPerFrame: Int = 1000,
        layers: [SimulcastLayer]? = nil
    ) -> Camera? {
        let (width, height) = (layers?.last?.width ?? 640, layers?.last?.height ?? 480)
        var request = Publish(requestId: 1, name: name, source: "camera", width: width, height: height, frameRate: 30)
        request.simulcastLayers = layers
        send(.publish(request), from: peer)
        pull(peer)
        let answers = peer.messages.compactMap { if case .published(let body) = $0 { body.track } else { nil } }
        guard let track = answers.last, cameras[track.alias] == nil else { return nil }
        let camera = Camera(track: track, publisher: peer, bytesPerFrame: bytesPerFrame)
        cameras[track.alias] = camera
        defer {
            for camera in encodings(of: camera) { camera.clock = { [weak self] in self?.now ?? .init(nanoseconds: 0) } }
        }
        furtherCameras[track.alias] = (layers ?? []).dropFirst().map {
            Camera(
                track: track,
                publisher: peer,
                simulcastLayer: $0.simulcastLayer,
                bytesPerFrame: bytesPerFrame << (2 * $0.simulcastLayer)
            )
        }
        for case .layersWanted(let body) in peer.messages where body.trackId == track.id {
            for camera in encodings(of: camera) { want(body.layers, of: camera) }
        }
        return camera
    }

    func receive(_ packets: [PacketBuffer], from peer: Peer) {
        for packet in packets {
            peer.bytesSent += packet.count
            relay.receive(packet, from: peer.id, at: now)
        }
    }

    /// The camera sends its next frame.
    func frame(_ camera: Camera) { receive(camera.nextFrame(), from: camera.publisher) }

    /// The camera sends frames, 33 ms apart, the publisher and the peers of `takers` taking all there is.
    func run(_ camera: Camera, frames: Int, takers: [Peer] = []) {
        for _ in 0..<frames {
            frame(camera)
            pull(takers + [camera.publisher])
            advance(.milliseconds(33))
            pull(camera.publisher)
        }
    }

    /// What became of a camera's packets for a peer.
    func counts(_ camera: Camera, _ peer: Peer) -> PacketCounts? {
        relay.packetCounts(ofTrack: camera.track.id, for: peer.id)
    }

    // MARK: Time

    /// Moves the clock, stopping at each deadline on the way.
    func advance(_ duration: Duration) {
        let end = now + duration
        while let deadline = relay.nextDeadline, deadline <= end {
            now = max(now, deadline)
            relay.deadlineReached(at: now)
            // Otherwise a driver's loop would spin.
            if let next = relay.nextDeadline, next <= now { Issue.record("still due at \(next) of \(now)") }
        }
        now = end
    }

    func takeAwakened() -> [SlotID] {
        takeEffects()
        defer { awakened = [] }
        return awakened
    }

    func takeOverdue() -> [SlotID] {
        takeEffects()
        defer { overdue = [] }
        return overdue
    }

    private func takeEffects() {
        while let effect = relay.nextEffect() {
            switch effect {
            case .wake(let id, _): awakened.append(id)
            case .cut(let id): overdue.append(id)
            case .log(let notice): notices.append(notice)
            }
        }
    }
}
