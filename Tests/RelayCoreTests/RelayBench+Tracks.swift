import MediaCore
import RelayCore
import RoomProtocol

/// Tracks, and the frames that their cameras send.
extension RelayBench {
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
        var request = Publish(
            requestId: 1,
            name: name,
            source: "camera",
            codec: VideoCodec.vp8,
            width: width,
            height: height,
            frameRate: 30
        )
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

    /// The cameras of a track's encodings, in order of their numbers.
    func encodings(of camera: Camera) -> [Camera] { encodings(ofTrack: camera.track.id) }

    func encodings(ofTrack id: String) -> [Camera] {
        guard let first = cameras.values.first(where: { $0.track.id == id }) else { return [] }
        return [first] + (furtherCameras[first.track.alias] ?? [])
    }

    func want(_ layers: [WantedLayer], of camera: Camera) {
        let wanted = layers.first { $0.simulcastLayer == camera.simulcastLayer }
        if wanted != nil && camera.wanted == nil { camera.wantsKeyframe = true }
        camera.wanted = wanted
    }
}
