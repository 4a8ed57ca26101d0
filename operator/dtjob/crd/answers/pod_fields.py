# SPDX-License-Identifier: Apache-2.0
"""The fields of a pod's spec in Kubernetes 1.37, by type. Made by `python -m tools.pod_fields`.

A line begins with a type. Of its fields, `[x]` is a list of x, and `{x}` has names with values x.
"""

VERSION = "1.37"

FIELDS = """
AWSElasticBlockStoreVolumeSource fsType=text partition=int readOnly=bool volumeID=text
Affinity nodeAffinity=NodeAffinity podAffinity=PodAffinity podAntiAffinity=PodAntiAffinity
AppArmorProfile localhostProfile=text type=text
AzureDiskVolumeSource cachingMode=text diskName=text diskURI=text fsType=text kind=text readOnly=bool
AzureFileVolumeSource readOnly=bool secretName=text shareName=text
CSIVolumeSource driver=text fsType=text nodePublishSecretRef=LocalObjectReference readOnly=bool volumeAttributes={text}
Capabilities add=[text] drop=[text]
CephFSVolumeSource monitors=[text] path=text readOnly=bool secretFile=text secretRef=LocalObjectReference user=text
CinderVolumeSource fsType=text readOnly=bool secretRef=LocalObjectReference volumeID=text
ClusterTrustBundleProjection labelSelector=LabelSelector name=text optional=bool path=text signerName=text user=int
ConfigMapEnvSource name=text optional=bool
ConfigMapKeySelector key=text name=text optional=bool
ConfigMapProjection items=[KeyToPath] name=text optional=bool
ConfigMapVolumeSource defaultMode=int defaultUser=int items=[KeyToPath] name=text optional=bool
Container args=[text] command=[text] env=[EnvVar] envFrom=[EnvFromSource] image=text imagePullPolicy=text
  lifecycle=Lifecycle livenessProbe=Probe name=text ports=[ContainerPort] readinessProbe=Probe
  resizePolicy=[ContainerResizePolicy] resources=ResourceRequirements restartPolicy=text
  restartPolicyRules=[ContainerRestartRule] securityContext=SecurityContext startupProbe=Probe stdin=bool stdinOnce=bool
  terminationMessagePath=text terminationMessagePolicy=text tty=bool volumeDevices=[VolumeDevice]
  volumeMounts=[VolumeMount] workingDir=text
ContainerPort containerPort=int hostIP=text hostPort=int name=text protocol=text
ContainerResizePolicy resourceName=text restartPolicy=text
ContainerRestartRule action=text exitCodes=ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes operator=text values=[int]
DownwardAPIProjection items=[DownwardAPIVolumeFile]
DownwardAPIVolumeFile fieldRef=ObjectFieldSelector mode=int path=text resourceFieldRef=ResourceFieldSelector user=int
DownwardAPIVolumeSource defaultMode=int defaultUser=int items=[DownwardAPIVolumeFile]
EmptyDirVolumeSource medium=text mode=int sizeLimit=quantity
EnvFromSource configMapRef=ConfigMapEnvSource prefix=text secretRef=SecretEnvSource
EnvVar name=text value=text valueFrom=EnvVarSource
EnvVarSource configMapKeyRef=ConfigMapKeySelector fieldRef=ObjectFieldSelector fileKeyRef=FileKeySelector
  resourceFieldRef=ResourceFieldSelector secretKeyRef=SecretKeySelector
EphemeralContainer args=[text] command=[text] env=[EnvVar] envFrom=[EnvFromSource] image=text imagePullPolicy=text
  lifecycle=Lifecycle livenessProbe=Probe name=text ports=[ContainerPort] readinessProbe=Probe
  resizePolicy=[ContainerResizePolicy] resources=ResourceRequirements restartPolicy=text
  restartPolicyRules=[ContainerRestartRule] securityContext=SecurityContext startupProbe=Probe stdin=bool stdinOnce=bool
  targetContainerName=text terminationMessagePath=text terminationMessagePolicy=text tty=bool
  volumeDevices=[VolumeDevice] volumeMounts=[VolumeMount] workingDir=text
EphemeralVolumeSource volumeClaimTemplate=PersistentVolumeClaimTemplate
EvictionResponder name=text priority=int
ExecAction command=[text]
FCVolumeSource fsType=text lun=int readOnly=bool targetWWNs=[text] wwids=[text]
FileKeySelector key=text optional=bool path=text volumeName=text
FlexVolumeSource driver=text fsType=text options={text} readOnly=bool secretRef=LocalObjectReference
FlockerVolumeSource datasetName=text datasetUUID=text
GCEPersistentDiskVolumeSource fsType=text partition=int pdName=text readOnly=bool
GRPCAction mode=text port=int service=text
GitRepoVolumeSource directory=text repository=text revision=text
GlusterfsVolumeSource endpoints=text path=text readOnly=bool
HTTPGetAction host=text httpHeaders=[HTTPHeader] path=text port=port protocol=text scheme=text
HTTPHeader name=text value=text
HostAlias hostnames=[text] ip=text
HostPathVolumeSource path=text type=text
ISCSIVolumeSource chapAuthDiscovery=bool chapAuthSession=bool fsType=text initiatorName=text iqn=text
  iscsiInterface=text lun=int portals=[text] readOnly=bool secretRef=LocalObjectReference targetPortal=text
ImageVolumeSource pullPolicy=text reference=text
KeyToPath key=text mode=int path=text user=int
LabelSelector matchExpressions=[LabelSelectorRequirement] matchLabels={text}
LabelSelectorRequirement key=text operator=text values=[text]
Lifecycle postStart=LifecycleHandler preStop=LifecycleHandler stopSignal=text
LifecycleHandler exec=ExecAction httpGet=HTTPGetAction sleep=SleepAction tcpSocket=TCPSocketAction
LocalObjectReference name=text
ManagedFieldsEntry apiVersion=text fieldsType=text fieldsV1=any manager=text operation=text subresource=text time=text
NFSVolumeSource path=text readOnly=bool server=text
NodeAffinity preferredDuringSchedulingIgnoredDuringExecution=[PreferredSchedulingTerm]
  requiredDuringSchedulingIgnoredDuringExecution=NodeSelector
NodeSelector nodeSelectorTerms=[NodeSelectorTerm]
NodeSelectorRequirement key=text operator=text values=[text]
NodeSelectorTerm matchExpressions=[NodeSelectorRequirement] matchFields=[NodeSelectorRequirement]
ObjectFieldSelector apiVersion=text fieldPath=text
ObjectMeta annotations={text} creationTimestamp=text deletionGracePeriodSeconds=int deletionTimestamp=text
  finalizers=[text] generateName=text generation=int labels={text} managedFields=[ManagedFieldsEntry] name=text
  namespace=text ownerReferences=[OwnerReference] resourceVersion=text selfLink=text uid=text
OwnerReference apiVersion=text blockOwnerDeletion=bool controller=bool kind=text name=text uid=text
PersistentVolumeClaimSpec accessModes=[text] dataSource=TypedLocalObjectReference dataSourceRef=TypedObjectReference
  resources=VolumeResourceRequirements selector=LabelSelector storageClassName=text volumeAttributesClassName=text
  volumeMode=text volumeName=text
PersistentVolumeClaimTemplate metadata=ObjectMeta spec=PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource claimName=text readOnly=bool
PhotonPersistentDiskVolumeSource fsType=text pdID=text
PodAffinity preferredDuringSchedulingIgnoredDuringExecution=[WeightedPodAffinityTerm]
  requiredDuringSchedulingIgnoredDuringExecution=[PodAffinityTerm]
PodAffinityTerm labelSelector=LabelSelector matchLabelKeys=[text] mismatchLabelKeys=[text]
  namespaceSelector=LabelSelector namespaces=[text] topologyKey=text
PodAntiAffinity preferredDuringSchedulingIgnoredDuringExecution=[WeightedPodAffinityTerm]
  requiredDuringSchedulingIgnoredDuringExecution=[PodAffinityTerm]
PodCertificateProjection certificateChainPath=text credentialBundlePath=text keyPath=text keyType=text
  maxExpirationSeconds=int signerName=text user=int userAnnotations={text}
PodDNSConfig nameservers=[text] options=[PodDNSConfigOption] searches=[text]
PodDNSConfigOption name=text value=text
PodOS name=text
PodReadinessGate conditionType=text
PodResourceClaim name=text resourceClaimName=text resourceClaimTemplateName=text
PodSchedulingGate name=text
PodSchedulingGroup podGroupName=text
PodSecurityContext appArmorProfile=AppArmorProfile fsGroup=int fsGroupChangePolicy=text runAsGroup=int runAsNonRoot=bool
  runAsUser=int seLinuxChangePolicy=text seLinuxOptions=SELinuxOptions seccompProfile=SeccompProfile
  supplementalGroups=[int] supplementalGroupsPolicy=text sysctls=[Sysctl] windowsOptions=WindowsSecurityContextOptions
PodSpec activeDeadlineSeconds=int affinity=Affinity automountServiceAccountToken=bool containers=[Container]
  dnsConfig=PodDNSConfig dnsPolicy=text enableServiceLinks=bool ephemeralContainers=[EphemeralContainer]
  evictionResponders=[EvictionResponder] hostAliases=[HostAlias] hostIPC=bool hostNetwork=bool hostPID=bool
  hostUsers=bool hostname=text hostnameOverride=text imagePullSecrets=[LocalObjectReference] initContainers=[Container]
  nodeName=text nodeSelector={text} os=PodOS overhead={quantity} preemptionPolicy=text priority=int
  priorityClassName=text readinessGates=[PodReadinessGate] resourceClaims=[PodResourceClaim]
  resources=ResourceRequirements restartPolicy=text runtimeClassName=text schedulerName=text
  schedulingGates=[PodSchedulingGate] schedulingGroup=PodSchedulingGroup securityContext=PodSecurityContext
  serviceAccount=text serviceAccountName=text setHostnameAsFQDN=bool shareProcessNamespace=bool subdomain=text
  terminationGracePeriodSeconds=int tolerations=[Toleration] topologySpreadConstraints=[TopologySpreadConstraint]
  volumes=[Volume]
PortworxVolumeSource fsType=text readOnly=bool volumeID=text
PreferredSchedulingTerm preference=NodeSelectorTerm weight=int
Probe exec=ExecAction failureThreshold=int grpc=GRPCAction httpGet=HTTPGetAction initialDelaySeconds=int
  periodSeconds=int successThreshold=int tcpSocket=TCPSocketAction terminationGracePeriodSeconds=int timeoutSeconds=int
ProjectedVolumeSource defaultMode=int defaultUser=int sources=[VolumeProjection]
QuobyteVolumeSource group=text readOnly=bool registry=text tenant=text user=text volume=text
RBDVolumeSource fsType=text image=text keyring=text monitors=[text] pool=text readOnly=bool
  secretRef=LocalObjectReference user=text
ResourceClaim name=text request=text
ResourceFieldSelector containerName=text divisor=quantity resource=text
ResourceRequirements claims=[ResourceClaim] limits={quantity} requests={quantity}
SELinuxOptions level=text role=text type=text user=text
ScaleIOVolumeSource fsType=text gateway=text protectionDomain=text readOnly=bool secretRef=LocalObjectReference
  sslEnabled=bool storageMode=text storagePool=text system=text volumeName=text
SeccompProfile localhostProfile=text type=text
SecretEnvSource name=text optional=bool
SecretKeySelector key=text name=text optional=bool
SecretProjection items=[KeyToPath] name=text optional=bool
SecretVolumeSource defaultMode=int defaultUser=int items=[KeyToPath] optional=bool secretName=text
SecurityContext allowPrivilegeEscalation=bool appArmorProfile=AppArmorProfile capabilities=Capabilities privileged=bool
  procMount=text readOnlyRootFilesystem=bool runAsGroup=int runAsNonRoot=bool runAsUser=int
  seLinuxOptions=SELinuxOptions seccompProfile=SeccompProfile windowsOptions=WindowsSecurityContextOptions
ServiceAccountTokenProjection audience=text expirationSeconds=int path=text user=int
SleepAction seconds=int
StorageOSVolumeSource fsType=text readOnly=bool secretRef=LocalObjectReference volumeName=text volumeNamespace=text
Sysctl name=text value=text
TCPSocketAction host=text port=port
Toleration effect=text key=text operator=text tolerationSeconds=int value=text
TopologySpreadConstraint labelSelector=LabelSelector matchLabelKeys=[text] maxSkew=int minDomains=int
  nodeAffinityPolicy=text nodeTaintsPolicy=text topologyKey=text whenUnsatisfiable=text
TypedLocalObjectReference apiGroup=text kind=text name=text
TypedObjectReference apiGroup=text kind=text name=text namespace=text
Volume awsElasticBlockStore=AWSElasticBlockStoreVolumeSource azureDisk=AzureDiskVolumeSource
  azureFile=AzureFileVolumeSource cephfs=CephFSVolumeSource cinder=CinderVolumeSource configMap=ConfigMapVolumeSource
  csi=CSIVolumeSource downwardAPI=DownwardAPIVolumeSource emptyDir=EmptyDirVolumeSource ephemeral=EphemeralVolumeSource
  fc=FCVolumeSource flexVolume=FlexVolumeSource flocker=FlockerVolumeSource
  gcePersistentDisk=GCEPersistentDiskVolumeSource gitRepo=GitRepoVolumeSource glusterfs=GlusterfsVolumeSource
  hostPath=HostPathVolumeSource image=ImageVolumeSource iscsi=ISCSIVolumeSource name=text nfs=NFSVolumeSource
  persistentVolumeClaim=PersistentVolumeClaimVolumeSource photonPersistentDisk=PhotonPersistentDiskVolumeSource
  portworxVolume=PortworxVolumeSource projected=ProjectedVolumeSource quobyte=QuobyteVolumeSource rbd=RBDVolumeSource
  scaleIO=ScaleIOVolumeSource secret=SecretVolumeSource storageos=StorageOSVolumeSource
  vsphereVolume=VsphereVirtualDiskVolumeSource
VolumeDevice devicePath=text name=text
VolumeMount bindMountOptions=[text] mountPath=text mountPropagation=text name=text readOnly=bool recursiveReadOnly=text
  subPath=text subPathExpr=text
VolumeProjection clusterTrustBundle=ClusterTrustBundleProjection configMap=ConfigMapProjection
  downwardAPI=DownwardAPIProjection podCertificate=PodCertificateProjection secret=SecretProjection
  serviceAccountToken=ServiceAccountTokenProjection
VolumeResourceRequirements limits={quantity} requests={quantity}
VsphereVirtualDiskVolumeSource fsType=text storagePolicyID=text storagePolicyName=text volumePath=text
WeightedPodAffinityTerm podAffinityTerm=PodAffinityTerm weight=int
WindowsSecurityContextOptions gmsaCredentialSpec=text gmsaCredentialSpecName=text hostProcess=bool runAsUserName=text
"""
