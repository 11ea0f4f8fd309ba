import MediaCore
import RelayCore
import RoomProtocol

/// What the sockets take, and what their clients make of it.
extension RelayBench {
    /// The socket of `peer` takes up to `limit` bytes of media, or all that there is.
    func pull(_ peer: Peer, limit: Int = .max) {
        var taken = 0
        takeEffects()
        while taken < limit {
            guard let turn = relay.nextMessage(for: peer.id, at: now) else { return fallAsleep(peer) }
            switch turn.message {
            case .text(let text): take(text, peer)
            case .close(let code, let reason):
                if peer.close != nil { peer.problems.append("closed twice") }
                peer.close = (RoomErrorCode(rawValue: Int(code)), reason)
            case .exclusive(let packet): takeAcknowledgement(packet, peer)
            case .shared(let packet):
                taken += packet.count
                mediaTaken += 1
                take(packet, peer)
            }
            // As the driver does it: what this gets wrong is missing at the peer, or comes too late.
            if turn.isLast { return fallAsleep(peer) }
        }
    }

    /// The sockets of `peers` take all there is, and nobody looks at it: in a large room, reading takes its time.
    func discard(_ peers: [Peer]) {
        for peer in peers {
            while let turn = relay.nextMessage(for: peer.id, at: now) {
                if case .shared = turn.message { mediaTaken += 1 }
                if turn.isLast { break }
            }
        }
    }

    private func takeAcknowledgement(_ packet: PacketBuffer, _ peer: Peer) {
        guard let acknowledgement = try? packet.withBytes({ try MediaAcknowledgement(reading: $0) }) else {
            return peer.problems.append("an unreadable acknowledgement")
        }
        peer.acknowledgements.append(acknowledgement)
        peer.bytesTaken += packet.count
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
            where camera.answersRequests
                && camera.simulcastLayer == body.simulcastLayer ?? camera.simulcastLayer
            {
                camera.wantsKeyframe = true
            }
        default: break
        }
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
}
